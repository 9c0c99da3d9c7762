package objects

import (
	"sync"
	"time"
)

const (
	// leastPause is the least time between two writes of a cache.
	leastPause = time.Second
	// pauseFactor makes the pause after a write longer for a large cache: writing takes at most a twentieth of one
	// processor.
	pauseFactor = 20
)

// Writer writes a cache in the background, at most about once a second. The methods are safe for concurrent use.
type Writer struct {
	write func()
	dirty chan struct{}
	stop  chan struct{}
	ended sync.WaitGroup
}

// NewWriter starts a writer. write writes what is in force when it is called.
func NewWriter(write func()) *Writer {
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
		w.write()
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
		w.write()
		pause := time.NewTimer(max(leastPause, pauseFactor*time.Since(began)))
		select {
		case <-w.stop:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}
