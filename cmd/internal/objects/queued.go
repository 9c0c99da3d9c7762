package objects

import (
	"context"
	"sync/atomic"

	"github.com/headgate/headgate/internal/config/source"
)

// queued bounds the texts that the sink has not taken, in bytes. One goroutine adds, and one removes.
type queued struct {
	bytes atomic.Int64
	// freed has a signal after each removal.
	freed chan struct{}
}

func newQueued() *queued { return &queued{freed: make(chan struct{}, 1)} }

// add waits until n bytes have space, and reports whether they have it before ctx ends. Any number has space if nothing waits.
func (q *queued) add(ctx context.Context, n int) bool {
	for {
		if has := q.bytes.Load(); has == 0 || has+int64(n) <= source.MaxTotal {
			q.bytes.Add(int64(n))
			return true
		}
		select {
		case <-q.freed:
		case <-ctx.Done():
			return false
		}
	}
}

// remove frees space.
func (q *queued) remove(n int) {
	q.bytes.Add(-int64(n))
	select {
	case q.freed <- struct{}{}:
	default:
	}
}

// size is the length of the texts of an event.
func (e *event) size() int {
	if e.change == nil {
		return 0
	}
	return textsOf(e.change)
}

// textsOf is the length of the texts of a change.
func textsOf(c *source.Change) int {
	n := 0
	for i := range c.Objects {
		n += len(c.Objects[i].Text)
	}
	return n
}
