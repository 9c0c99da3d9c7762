package objects

import (
	"sync"
	"time"
)

const (
	// leastPause is the least time between two writes of a cache.
	leastPause = time.Second
	// pauseFactor makes the pause after a write longer for a large cache. A write rests most of its time, so that writing
	// takes about a hundredth of one processor.
	pauseFactor = 10
	// rest is the pause after each step of a write.
	rest = time.Millisecond
)

// Writer writes a cache in the background, at most about once a second. The methods are safe for concurrent use.
type Writer struct {
	write func(rest func())
	dirty chan struct{}
	stop  chan struct{}
	ended sync.WaitGroup
}

// NewWriter starts a writer. write writes what is in force when it is called. It calls its argument often, which rests,
// so that writing leaves the processor to others.
func NewWriter(write func(rest func())) *Writer {
	w := &Writer{write: write, dirty: make(chan struct{}, 1), stop: make(chan struct{})}
	w.ended.Go(w.run)
	return w
}

// Changed says that what is in force differs from the cache.
func (w *Writer) Changed() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// Stop writes what has changed, and ends the writer.
func (w *Writer) Stop() {
	close(w.stop)
	w.ended.Wait()
	select {
	case <-w.dirty:
		w.write(func() {})
	default:
	}
}

func (w *Writer) run() {
	for {
		select {
		case <-w.stop:
			return
		case <-w.dirty:
		}
		began := time.Now()
		w.write(func() { w.wait(rest) })
		if !w.wait(max(leastPause, pauseFactor*time.Since(began))) {
			return
		}
	}
}

// wait waits, and reports whether the writer goes on.
func (w *Writer) wait(d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-w.stop:
		return false
	case <-pause.C:
		return true
	}
}
