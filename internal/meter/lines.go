package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/meter/journal"
	"github.com/headgate/headgate/internal/readfile"
)

// Bounds of files of lines by default.
const (
	DefaultLinesBytes = 64 << 20
	DefaultLinesAge   = time.Hour
)

const (
	linesMode       fs.FileMode = 0o640
	linesFolderMode fs.FileMode = 0o750
	linesPrefix                 = "usage-"
	linesSuffix                 = ".jsonl"
	// openSuffix marks the file that is written now.
	openSuffix = ".open"
)

// LinesConfig configures NewLines.
type LinesConfig struct {
	// Folder gets the files. Instances may share it.
	Folder string
	// Instance is a part of the names of files.
	Instance string
	// MaxBytes and MaxAge say when a file is complete; 0 are DefaultLinesBytes and DefaultLinesAge. An empty file is not made.
	MaxBytes int64
	MaxAge   time.Duration
	// Keep is the number of complete files of this instance that stay; 0 keeps all. The oldest are removed first, whatever the clock
	// said when they were written.
	Keep int
}

// Lines writes records as lines of JSON in files.
type Lines struct {
	config LinesConfig
	prefix string
	note   string // the path of openNote; "" before start
	file   *os.File
	name   string // of file, without openSuffix
	begun  time.Time
	last   time.Time // in the name of the newest file; zero before begin
	size   int64     // of the delivered lines
	torn   bool      // file may have bytes behind size, of a failed attempt
	number int
	body   []byte
}

// NewLines gives an output that writes files. A file that is complete has a name like
// usage-INSTANCE-TIME-NUMBER.jsonl and mode 0640. The names are in the order of the files, so TIME is later than the clock after the
// clock was set back; the one that is written has a further .open. Open completes the file that an
// earlier run has left: a line that was not complete is cut, and comes again. It finds the file also if the instance had another name
// then: its path is in a file beside the journal.
func NewLines(c LinesConfig) (*Lines, error) {
	if c.Folder == "" {
		return nil, errors.New("meter: the files of lines have no folder: set LinesConfig.Folder")
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultLinesBytes
	}
	if c.MaxAge <= 0 {
		c.MaxAge = DefaultLinesAge
	}
	return &Lines{config: c, prefix: linesPrefix + url.PathEscape(c.Instance) + "-"}, nil
}

// openNote is a file in the folder of the journal. It has the path of the file that is written, without openSuffix.
const openNote = "lines.open"

// maxPath bounds the bytes of openNote.
const maxPath = 4 << 10

// start makes the folder, and completes the files of an earlier run. Open calls it with the lock of the journal: without the lock, the
// files could belong to a process that writes them now. The earlier run with this journal may have had another name, as a pod
// with the name of its host has.
func (l *Lines) start(journal string) error {
	return adviseFolder(linesFolder, l.config.Folder, l.begunBy(journal))
}

func (l *Lines) begunBy(journal string) error {
	if err := os.MkdirAll(l.config.Folder, linesFolderMode); err != nil {
		return err
	}
	if err := l.completeLeft(); err != nil {
		return err
	}
	l.note = filepath.Join(journal, openNote)
	text, err := readfile.Head(l.note, maxPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	former := string(text)
	if err != nil || !strings.HasPrefix(filepath.Base(former), linesPrefix) || !strings.HasSuffix(former, linesSuffix) {
		return err
	}
	if err := completeFile(former + openSuffix); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// completeLeft completes the files that an earlier run of the instance has left.
func (l *Lines) completeLeft() error {
	left, err := l.named(linesSuffix + openSuffix)
	for _, name := range left {
		err = errors.Join(err, completeFile(filepath.Join(l.config.Folder, name)))
	}
	return err
}

// writeNote writes a small file in one step.
func writeNote(name, text string) error {
	next := name + ".next"
	if err := os.WriteFile(next, []byte(text), privateMode); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// Name implements Output.
func (*Lines) Name() string { return "lines" }

// named lists the files of this instance with a suffix, the oldest first: their names begin with the time.
func (l *Lines) named(suffix string) ([]string, error) {
	entries, err := os.ReadDir(l.config.Folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		rest, mine := strings.CutPrefix(e.Name(), l.prefix)
		middle, ok := strings.CutSuffix(rest, suffix)
		if _, valid := timeOfName(middle); mine && ok && valid && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// timeOfName reads the part of a file's name between the instance and the suffix.
func timeOfName(middle string) (at time.Time, valid bool) {
	if len(middle) != len(linesTime)+len("-000000") {
		return at, false
	}
	at, err := time.Parse(linesTime, middle[:len(linesTime)])
	return at, err == nil
}

// nameTime gives the time for the name of a new file: now, or later than all files of this instance. Keep removes the first files by
// name. After a clock was set back, a new file would else come before the older ones, and be removed in their place.
func (l *Lines) nameTime(now time.Time) (time.Time, error) {
	if l.last.IsZero() {
		for _, suffix := range [...]string{linesSuffix, linesSuffix + openSuffix} {
			names, err := l.named(suffix)
			if err != nil {
				return now, err
			}
			if n := len(names); n > 0 {
				at, _ := timeOfName(names[n-1][len(l.prefix) : len(names[n-1])-len(suffix)])
				l.last = later(at, l.last)
			}
		}
	}
	now = now.Round(0) // Without the monotonic clock, because names have the wall clock.
	l.last = later(now, l.last.Add(time.Nanosecond))
	return l.last, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// linesTime is the form of the time in the names of files, with nanoseconds so that names do not repeat.
const linesTime = "20060102T150405.000000000Z"

// completeFile cuts an incomplete last line, and gives the file its final name. It removes a file without a line.
func completeFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	var end int64
	if err == nil {
		if end, err = lastLine(f, info.Size()); err == nil {
			err = errors.Join(f.Truncate(end), f.Sync())
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if end == 0 {
		return os.Remove(name)
	}
	return os.Rename(name, strings.TrimSuffix(name, openSuffix))
}

// lastLine gives the end of the last complete line.
func lastLine(f io.ReaderAt, size int64) (int64, error) {
	chunk := make([]byte, 64<<10)
	for end := size; end > 0; {
		from := max(0, end-int64(len(chunk)))
		n, err := f.ReadAt(chunk[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(chunk[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// Deliver implements Output. It returns after the lines are synced.
func (l *Lines) Deliver(ctx context.Context, records []journal.Record) (delivered int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	delivered, err = l.deliver(records)
	return delivered, adviseFolder(linesFolder, l.config.Folder, err)
}

func (l *Lines) deliver(records []journal.Record) (delivered int, err error) {
	if err := l.ready(time.Now()); err != nil {
		return 0, err
	}
	l.body = l.body[:0]
	for i := range records {
		l.body = appendLine(l.body, &records[i])
	}
	n, err := l.file.Write(l.body)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		// The lines come again, in the same file: while a disk is full, each attempt would otherwise leave a file.
		l.torn = true
		return 0, errors.Join(err, l.cut())
	}
	l.size += int64(n)
	return len(records), nil
}

// cut removes what a failed attempt has left in the file.
func (l *Lines) cut() error {
	if l.file == nil || !l.torn {
		return nil
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	l.torn = false
	return nil
}

// ready makes the file to write to.
func (l *Lines) ready(now time.Time) error {
	if l.file != nil {
		info, err := os.Stat(l.name + openSuffix)
		mine, other := l.file.Stat()
		switch {
		case err != nil || other != nil || !os.SameFile(info, mine):
			_ = l.file.Close() // It was removed or renamed by others.
			l.file = nil
		case l.size >= l.config.MaxBytes || now.Sub(l.begun) >= l.config.MaxAge:
			if err := l.complete(); err != nil {
				return err
			}
		}
	}
	if l.file != nil {
		return l.cut()
	}
	return l.begin(now)
}

func (l *Lines) begin(now time.Time) error {
	if err := os.MkdirAll(l.config.Folder, linesFolderMode); err != nil {
		return err
	}
	at, err := l.nameTime(now)
	if err != nil {
		return err
	}
	l.number++
	l.name = filepath.Join(l.config.Folder, fmt.Sprintf("%s%s-%06d%s", l.prefix, at.UTC().Format(linesTime), l.number%1e6, linesSuffix))
	if l.note != "" {
		path, err := filepath.Abs(l.name) // The next run may start in another folder.
		if err == nil {
			err = writeNote(l.note, path)
		}
		if err != nil {
			return err
		}
	}
	f, err := os.OpenFile(l.name+openSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, linesMode)
	if err != nil {
		return err
	}
	l.file, l.begun, l.size, l.torn = f, now, 0, false
	return syncFolder(l.config.Folder) // A crash of the machine must not lose the file itself.
}

// complete gives the present file its final name, and removes the oldest files beyond Keep.
func (l *Lines) complete() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.cut(), l.file.Close())
	l.file = nil
	if err = errors.Join(err, completeFile(l.name+openSuffix)); err != nil || l.config.Keep <= 0 {
		return err
	}
	names, err := l.named(linesSuffix)
	for _, name := range names[:max(0, len(names)-l.config.Keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(l.config.Folder, name)))
	}
	return err
}

// tick completes a file that is old enough.
func (l *Lines) tick(now time.Time) error {
	if l.file == nil || now.Sub(l.begun) < l.config.MaxAge {
		return nil
	}
	return adviseFolder(linesFolder, l.config.Folder, l.complete())
}

// Close implements Output. It completes the present file.
func (l *Lines) Close() error { return l.complete() }

// syncFolder syncs the names of a folder. Windows has no such call, and syncs names by itself.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
