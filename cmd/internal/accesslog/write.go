package accesslog

import (
	"bytes"
	"io"
	"os"
	"time"

	"github.com/headgate/headgate/cmd/internal/loglimit"
)

// writer is the state of a Log that only its goroutine uses.
type writer struct {
	to       io.Writer
	file     *os.File // nil if the caller owns the output
	spare    []byte   // replaces pending during a write
	torn     bool     // the last write ended inside a line
	failed   error    // error of the last write, not reported yet
	reported uint64   // number of dropped lines that were reported
	reports  loglimit.Limiter
}

func (l *Log) run() {
	defer close(l.ended)
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for {
		select {
		case <-l.wake:
		case <-l.stop:
			l.finish()
			return
		}
		timer.Reset(gather)
		select {
		case <-timer.C:
		case <-l.full:
		case <-l.stop:
		}
		l.flush()
	}
}

// finish writes the last lines and closes the file.
func (l *Log) finish() {
	l.flush()
	l.out.reports = loglimit.Limiter{}
	l.reportLost()
	if l.out.file != nil {
		_ = l.out.file.Close()
	}
}

// flush writes the buffered lines, to the new file if Reopen has set one.
func (l *Log) flush() {
	if fresh := l.next.Swap(nil); fresh != nil {
		_ = l.out.file.Close()
		l.out.to, l.out.file, l.out.torn = fresh, fresh, false
	}
	l.mu.Lock()
	batch := l.pending
	l.pending = l.out.spare[:0]
	l.mu.Unlock()
	l.out.spare = batch
	if lost := l.out.write(batch); lost > 0 {
		l.dropped.Add(uint64(lost))
	}
	l.reportLost()
}

// write writes the batch and returns the number of lost lines. If the last write ended
// inside a line, it ends that line first, so that no two lines are joined.
func (w *writer) write(batch []byte) (lost int) {
	if len(batch) == 0 {
		return 0
	}
	if w.torn {
		if _, err := w.to.Write([]byte{'\n'}); err != nil {
			w.failed = err
			return bytes.Count(batch, []byte{'\n'})
		}
		w.torn = false
	}
	n, err := w.to.Write(batch)
	if err == nil {
		return 0
	}
	n = min(max(n, 0), len(batch))
	w.failed = err
	w.torn = n > 0 && batch[n-1] != '\n'
	return bytes.Count(batch[n:], []byte{'\n'})
}

// reportLost logs the lost lines, at most once per loglimit.Every.
func (l *Log) reportLost() {
	dropped := l.dropped.Load()
	if dropped == l.out.reported || l.report == nil {
		return
	}
	if _, log := l.out.reports.Event(time.Now()); !log {
		return
	}
	if l.out.failed != nil {
		l.report.Error("the access log could not be written", "error", l.out.failed, "lines_lost", dropped-l.out.reported)
	} else {
		l.report.Warn("the access log is written too slowly, and lines are dropped", "lines_lost", dropped-l.out.reported)
	}
	l.out.reported, l.out.failed = dropped, nil
}
