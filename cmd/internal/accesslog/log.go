package accesslog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// maxPending bounds the buffered lines, in bytes. The buffer holds the lines of a tenth
	// of a second, at a hundred thousand requests per second.
	maxPending = 4 << 20
	// writeBytes is the number of buffered bytes that starts a write at once.
	writeBytes = 64 << 10
	// gather is how long fewer bytes are buffered, to write them together.
	gather = 250 * time.Millisecond
	// closeTimeout bounds how long Close waits for the last write.
	closeTimeout = 2 * time.Second
	fileMode     = 0o640
)

// Config configures Open.
type Config struct {
	// Format is the form of the lines.
	Format Format
	// File is appended to, and created if missing. With "", lines go to Output.
	File string
	// Output is used without a File; nil means standard output.
	Output io.Writer
	// Report receives reports about lost lines. With nil, losses are not reported.
	Report *slog.Logger
}

// Log writes lines. A Log is safe for concurrent use.
type Log struct {
	format Format
	path   string
	report *slog.Logger

	lines   sync.Pool // of *[]byte buffers for lines
	second  atomic.Pointer[second]
	dropped atomic.Uint64

	mu      sync.Mutex // guards pending and closed; held only to append a line or to swap the buffer
	pending []byte
	closed  bool

	wake  chan struct{} // signals that there are lines
	full  chan struct{} // signals that the lines should be written at once
	stop  chan struct{}
	ended chan struct{}

	next atomic.Pointer[os.File] // the file from Reopen that replaces the current one
	out  writer                  // used only by the goroutine of run
}

// second is the formatted text of a second.
type second struct {
	unix int64
	text string
}

// Open starts a log. Its goroutine ends with Close.
func Open(c Config) (*Log, error) {
	l := &Log{
		format: c.Format, path: c.File, report: c.Report,
		pending: make([]byte, 0, maxPending),
		wake:    make(chan struct{}, 1), full: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	l.lines.New = func() any { b := make([]byte, 0, MaxLine); return &b }
	l.out = writer{to: c.Output, spare: make([]byte, 0, maxPending)}
	if c.File != "" {
		file, err := openFile(c.File)
		if err != nil {
			return nil, err
		}
		l.out.to, l.out.file = file, file
	} else if c.Output == nil {
		l.out.to = os.Stdout
	}
	go l.run()
	return l, nil
}

// openFile opens a file for appending, so that an old and a new process can share it for a
// while. A pipe without a reader gives an error instead of blocking.
func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, adviseOpen(err)
	}
	return file, nil
}

// Probe checks whether Open could open a file, without creating it.
func Probe(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, fileMode)
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return adviseOpen(err)
	}
	// Permissions are not enough: the file system may be read-only.
	probe, err := os.CreateTemp(filepath.Dir(path), ".headgate-probe-")
	if err != nil {
		return adviseOpen(err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// adviseOpen adds advice to the error of a file that could not be opened for writing.
func adviseOpen(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("accesslog: %w: create the folder, or choose a file in another folder", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("accesslog: %w: allow the user of the process to write there", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("accesslog: %w: choose a file on a writable file system", err)
	case errors.Is(err, syscall.ENXIO):
		return fmt.Errorf("accesslog: %w: the file is a pipe without a reader: start the reader first", err)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("accesslog: %w: choose a file in the folder", err)
	}
	return fmt.Errorf("accesslog: %w", err)
}

// Write buffers a line for e. It never blocks on the reader of the log: a line beyond the
// buffer is dropped and counted.
func (l *Log) Write(e *Entry) {
	line, _ := l.lines.Get().(*[]byte) // The pool has only *[]byte.
	*line = l.format.append((*line)[:0], e, l.secondOf(e.Time))
	l.mu.Lock()
	before := len(l.pending)
	fits := !l.closed && before+len(*line) <= maxPending
	if fits {
		l.pending = append(l.pending, *line...)
	}
	after := len(l.pending)
	l.mu.Unlock()
	l.lines.Put(line)
	switch {
	case !fits:
		l.dropped.Add(1)
	case before == 0:
		signal(l.wake)
	case before < writeBytes && after >= writeBytes:
		signal(l.full)
	}
}

// secondOf returns the text of a time's second. Usually the line before has the same second.
func (l *Log) secondOf(t time.Time) string {
	unix := t.Unix()
	if s := l.second.Load(); s != nil && s.unix == unix {
		return s.text
	}
	s := &second{unix, l.format.second(t)}
	l.second.Store(s)
	return s.text
}

// signal sends a signal unless one is already pending.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Dropped returns the number of lost lines: dropped at a full buffer, or not written because
// of an error.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

// Reopen opens the file again after it was renamed. Later lines go to the new file. On an
// error the old file stays in use. Without a file, Reopen does nothing.
func (l *Log) Reopen() error {
	if l.path == "" {
		return nil
	}
	file, err := openFile(l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	closed := l.closed
	if !closed { // A closed log has no goroutine that would use the file.
		file = l.next.Swap(file)
	}
	l.mu.Unlock()
	if file != nil {
		_ = file.Close()
	}
	if closed {
		return errors.New("accesslog: the log is closed: open a new log")
	}
	signal(l.wake)
	signal(l.full)
	return nil
}

// Close writes the buffered lines and ends the log. Later lines are dropped. If the write
// blocks for two seconds, Close returns an error.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	patience := time.NewTimer(closeTimeout)
	defer patience.Stop()
	select {
	case <-l.ended:
		return nil
	case <-patience.C:
		return errors.New("accesslog: the last lines could not be written within 2s: check the reader of the log")
	}
}
