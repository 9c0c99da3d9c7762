package meta

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// wire is one live connection: a writer, a reader and a watcher. The first failure ends all three.
type wire struct {
	link     *link
	conn     net.Conn
	answered bool // Belongs to the reader while it runs.

	once   sync.Once
	broken chan struct{}
	err    error // Read err after broken is closed.
}

// serve writes requests and reads answers until the connection ends. It reports whether an answer
// has come, and why the connection ended.
func (l *link) serve(ctx context.Context, conn net.Conn) (answered bool, err error) {
	w := &wire{link: l, conn: conn, broken: make(chan struct{})}
	var others sync.WaitGroup
	others.Go(w.read)
	others.Go(func() { w.watch(ctx) })
	w.write()
	others.Wait()
	return w.answered, w.err
}

// end closes the connection, which ends all blocking calls. The first reason is kept.
func (w *wire) end(err error) {
	w.once.Do(func() {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the server closed the connection: %w", err)
		}
		w.err = err
		_ = w.conn.Close()
		close(w.broken)
	})
}

// write writes all queued bytes at once.
func (w *wire) write() {
	var batch []byte
	for {
		if w.link.load.Load() > 1 {
			// Several callers wait, and callers that were just answered are about to send more.
			// Yielding to them first gives 2 to 3 times as many answers with 64 callers.
			runtime.Gosched()
		}
		batch = w.link.hand(batch)
		if len(batch) == 0 {
			select {
			case <-w.link.wake:
				continue
			case <-w.broken:
				return
			}
		}
		for rest := batch; len(rest) > 0; {
			n, err := w.conn.Write(rest[:min(len(rest), chunk)])
			w.link.wrote(n)
			if err != nil {
				w.end(err)
				return
			}
			rest = rest[n:]
		}
	}
}

// chunk is how much is written at once, in bytes, so that progress of a long batch on a slow
// network is noticed.
const chunk = 64 << 10

// read gives each answer to its call, in the order of the calls.
func (w *wire) read() {
	l := w.link
	p := parser{
		r:        bufio.NewReaderSize(watched{w.conn, &l.reads}, readBuffer),
		maxValue: l.client.config.MaxValue,
	}
	for {
		if _, err := p.r.Peek(1); err != nil {
			w.end(err)
			return
		}
		t := l.head()
		if t == nil {
			w.end(fmt.Errorf("%w: it came unasked", ErrProtocol))
			return
		}
		for i := range t.asked {
			if err := p.answer(t.asked[i], &t.answers[i], t); err != nil {
				w.end(err)
				return
			}
		}
		w.answered = true
		refused := t.refused // The call belongs to its caller after finish.
		l.pop()
		l.client.finish(t, true, nil)
		if refused && l.leaves() {
			w.end(ErrUnable)
			return
		}
	}
}

// leavePause is the least time between two connections that are closed because of the server's answers.
const leavePause = time.Second

// leaves reports whether the connection is to be closed because the server cannot do requests: its address may lead
// to another server by now. Only the reader calls leaves.
func (l *link) leaves() bool {
	now := time.Now()
	if now.Sub(l.left) < leavePause {
		return false
	}
	l.left = now
	return true
}

// watch ends a connection with waiting requests and no progress, and the connection of a closed client.
func (w *wire) watch(ctx context.Context) {
	const looks = 4
	ticker := time.NewTicker(w.link.client.config.StallTimeout / looks)
	defer ticker.Stop()
	quiet, seen := 0, uint64(0)
	for {
		select {
		case <-ctx.Done():
			w.end(ErrClosed)
			return
		case <-w.broken:
			return
		case <-ticker.C:
		}
		owed, progress := w.link.standing()
		if !owed || progress != seen {
			quiet, seen = 0, progress
			continue
		}
		if quiet++; quiet >= looks {
			w.end(ErrStalled)
			return
		}
	}
}
