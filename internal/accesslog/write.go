package accesslog

import (
	"bytes"
	"io"
	"os"
	"time"
)

// tellEvery is how often the program's log is told that lines are being lost.
const tellEvery = 10 * time.Second

// writer is the goroutine's side of a Log.
type writer struct {
	to     io.Writer
	file   *os.File // to close; nil is not ours
	spare  []byte   // takes the place of pending while that is written
	torn   bool     // the last write ended within a line
	failed error    // of the last write, not told yet
	told   uint64   // dropped lines that were told of
	next   time.Time
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

// finish writes what is left, and closes the file.
func (l *Log) finish() {
	l.flush()
	l.out.next = time.Time{}
	l.tell()
	if l.out.file != nil {
		_ = l.out.file.Close()
	}
}

// flush writes all that is pending, into a new file when there is one.
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
	l.tell()
}

// write gives how many lines were lost. After a write that ended within a line it
// ends that line first, so that no line is joined to another.
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

// tell reports lost lines, now and then.
func (l *Log) tell() {
	dropped := l.dropped.Load()
	if dropped == l.out.told || l.report == nil {
		return
	}
	now := time.Now()
	if now.Before(l.out.next) {
		return
	}
	l.out.next = now.Add(tellEvery)
	if l.out.failed != nil {
		l.report.Error("the access log cannot be written", "error", l.out.failed, "lines_lost", dropped-l.out.told)
	} else {
		l.report.Warn("the access log is not written fast enough", "lines_lost", dropped-l.out.told)
	}
	l.out.told, l.out.failed = dropped, nil
}
