package readfile

import (
	"io/fs"
	"sync"
	"time"
)

// Pending runs file system calls with a Timeout, at most one at a time for each path. The
// zero value is ready to use and safe for concurrent use.
type Pending[T any] struct {
	mu    sync.Mutex
	calls map[string]*call[T] // running calls; protected by mu
}

// call is a running call. value and err are written before done is closed.
type call[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// Do runs f in a goroutine and returns its result. If an earlier call for the path is
// still running, Do waits for its result and does not run f. After Timeout the error is
// an *fs.PathError with ErrTimeout.
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
