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
	// maxPending bounds the lines that wait to be written: a tenth of a second of a
	// hundred thousand requests a second.
	maxPending = 4 << 20
	// writeBytes is from when on lines are written at once.
	writeBytes = 64 << 10
	// gather is how long fewer are kept, to be written together.
	gather = 250 * time.Millisecond
	// closePatience is how long Close waits for what is still to be written.
	closePatience = 2 * time.Second
	fileMode      = 0o640
)

// Config says what is written, and where.
type Config struct {
	// Format is the form of the lines.
	Format Format
	// File is appended to; it is made when it is not there. "" writes to Output.
	File string
	// Output is written to without a File; nil is standard output.
	Output io.Writer
	// Report is told of lines that were lost; nil is nobody.
	Report *slog.Logger
}

// Log writes lines. It is safe for concurrent use.
type Log struct {
	format Format
	path   string
	report *slog.Logger

	lines   sync.Pool // of *[]byte, to make lines in
	second  atomic.Pointer[second]
	dropped atomic.Uint64

	mu      sync.Mutex // held to copy a line or to take all of them
	pending []byte
	closed  bool

	wake  chan struct{} // there is something to do
	full  chan struct{} // and it should be done at once
	stop  chan struct{}
	ended chan struct{}

	next atomic.Pointer[os.File] // to go on in, by Reopen
	out  writer                  // the goroutine's alone
}

// second is the text of a second.
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

// openFile opens for appending, so that an old and a new process can write to the
// same file for a while. A pipe that nobody reads is an error, and does not block.
func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, adviseOpen(err)
	}
	return file, nil
}

// Probe tells whether Open could open a file, and makes none.
func Probe(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, fileMode)
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return adviseOpen(err)
	}
	// Permissions alone do not tell: a file system may be mounted for reading.
	probe, err := os.CreateTemp(filepath.Dir(path), ".headgate-probe-")
	if err != nil {
		return adviseOpen(err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// adviseOpen says what to do about a file that cannot be opened for writing.
func adviseOpen(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("accesslog: %w: make the folder, or name a file in another one", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("accesslog: %w: let the user of the process write there", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("accesslog: %w: name a file that is on a file system mounted for writing", err)
	case errors.Is(err, syscall.ENXIO):
		return fmt.Errorf("accesslog: %w: it is a pipe without a reader: start the reader first", err)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("accesslog: %w: name a file in the folder", err)
	}
	return fmt.Errorf("accesslog: %w", err)
}

// Write takes a line for e. It never waits for what reads the log: a line that
// finds no room is dropped and counted.
func (l *Log) Write(e *Entry) {
	line, _ := l.lines.Get().(*[]byte) // The pool holds nothing else.
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

// secondOf gives the text of a time's second, which is nearly always that of the
// line before.
func (l *Log) secondOf(t time.Time) string {
	unix := t.Unix()
	if s := l.second.Load(); s != nil && s.unix == unix {
		return s.text
	}
	s := &second{unix, l.format.second(t)}
	l.second.Store(s)
	return s.text
}

// signal leaves word, if none is waiting already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Dropped gives how many lines were lost: for want of room, or because they could
// not be written.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

// Reopen opens the file anew, after the old one was renamed. Lines from then on go
// into the new one. On an error the old one stays. Without a file it does nothing.
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
	if !closed { // Else nobody would take it.
		file = l.next.Swap(file)
	}
	l.mu.Unlock()
	if file != nil {
		_ = file.Close()
	}
	if closed {
		return errors.New("accesslog: the log is closed: open another")
	}
	signal(l.wake)
	signal(l.full)
	return nil
}

// Close writes what is pending and ends the log; lines after it are dropped.
// Where writing blocks, it gives up after two seconds, and the error says so.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-l.ended:
		return nil
	case <-patience.C:
		return errors.New("accesslog: the last lines could not be written: see what reads the log")
	}
}
