package readfile

import (
	"io/fs"
	"sync"
	"time"
)

// Pending runs calls to file systems with a Timeout, at most one at a time for each path. The zero value is
// ready to use, and safe for concurrent use.
type Pending[T any] struct {
	mu    sync.Mutex
	calls map[string]*call[T] // under mu; those that have not ended
}

// call is one call under way. value and err are written before done is closed.
type call[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// Do runs f in a goroutine and gives what f gave. While an earlier f of the path has not ended, Do
// starts none and waits for the earlier one. After Timeout the error is an *fs.PathError with ErrTimeout.
func (p *Pending[T]) Do(path string, f func() (T, error)) (T, error) {
	c := p.begin(path, f)
	timer := time.NewTimer(Timeout)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.value, c.err
	case <-timer.C:
		var none T
		return none, &fs.PathError{Op: "read", Path: path, Err: ErrTimeout}
	}
}

func (p *Pending[T]) begin(path string, f func() (T, error)) *call[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, found := p.calls[path]; found {
		return c
	}
	if p.calls == nil {
		p.calls = map[string]*call[T]{}
	}
	c := &call[T]{done: make(chan struct{})}
	p.calls[path] = c
	go func() {
		c.value, c.err = f()
		p.mu.Lock()
		delete(p.calls, path)
		p.mu.Unlock()
		close(c.done)
	}()
	return c
}
