package replay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/internal/sim"
)

// merged has the lines of several logs. It reads on in the log that is furthest back, so that rotated logs follow each other.
type merged struct {
	files []*file
	queue sim.Queue[*file] // those that have further lines
	lines int64
}

// file is a log that is read.
type file struct {
	FileReport

	reader *logs.Reader
	number int
	high   headgate.Instant // the latest arrival
	ended  headgate.Instant // the latest end of a request
	cut    error
}

// open opens all files.
func open(o *Options, parts []string) (m *merged, err error) {
	m = &merged{queue: sim.Queue[*file]{Before: func(a, b *file) bool {
		return a.high < b.high || a.high == b.high && a.number < b.number
	}}}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	opens := o.Open
	if opens == nil {
		opens = logs.Open
	}
	for i, name := range o.Files {
		settings := o.Logs
		settings.File, settings.Parts = i, parts
		reader, err := opens(name, settings)
		if _, cut := errors.AsType[*logs.CutError](err); cut {
			m.files = append(m.files, &file{FileReport: FileReport{Name: name}, cut: err})
			continue
		}
		if err != nil {
			return m, UsageError{fmt.Errorf("replay: %w", err)}
		}
		f := &file{FileReport: FileReport{Name: name}, reader: reader, number: i}
		m.files = append(m.files, f)
		m.queue.Push(f)
	}
	return m, nil
}

// close closes all files.
func (m *merged) close() {
	for _, f := range m.files {
		if f.reader != nil {
			_ = f.reader.Close() // It was only read.
		}
	}
}

// next reads a line of the file that is furthest back. The error is io.EOF after the last line of all files.
func (m *merged) next(l *logs.Line) (*file, error) {
	for m.queue.Len() > 0 {
		f := m.queue.First()
		err := f.reader.Next(l)
		if err == nil {
			m.lines++
			f.Lines++
			return f, nil
		}
		m.queue.Pop()
		if !errors.Is(err, io.EOF) {
			f.cut = err
		}
	}
	return nil, io.EOF
}

// seen follows the times of a request of a file.
func (m *merged) seen(f *file, l *logs.Line) {
	f.Requests++
	at := l.Arrival
	if f.Requests == 1 {
		f.first = at
	}
	f.first, f.last = min(f.first, at), max(f.last, at)
	end := at.Add(max(0, l.Duration))
	if back := f.ended.Sub(end); f.ended != 0 && back > f.back {
		f.back, f.backLine = back, l.Number
	}
	f.ended = max(f.ended, end)
	if at <= f.high {
		return
	}
	if f.high = at; m.queue.Len() > 1 {
		m.queue.Push(m.queue.Pop())
	}
}

// high is the time that all files have reached.
func (m *merged) high() headgate.Instant {
	if m.queue.Len() == 0 {
		return 0
	}
	return m.queue.First().high
}

// read is the number of bytes that were read, and the size of all files, or 0 if one of them is not known.
func (m *merged) read() (read, size int64) {
	known := true
	for _, f := range m.files {
		if f.reader == nil {
			continue
		}
		read += f.reader.Read()
		size += f.reader.Size()
		known = known && f.reader.Size() > 0
	}
	if !known {
		size = 0
	}
	return read, size
}

// FileReport is what was read of one log.
type FileReport struct {
	Name string `json:"name"`
	// Format is the format, and Moment says which moment the times of its lines are.
	Format string `json:"format,omitempty"`
	Moment string `json:"moment,omitempty"`
	// Hides are texts about what such logs do not show.
	Hides []string `json:"hides,omitempty"`
	// Lines were read, and Requests of them are requests. Skipped are the others, by their kinds.
	Lines    int64            `json:"lines"`
	Requests int64            `json:"requests"`
	Skipped  map[string]int64 `json:"skipped,omitempty"`
	// First and Last are the times of the first and the last request.
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
	// Back is the largest step back in time, in seconds, and BackLine its line.
	Back     float64 `json:"back"`
	BackLine int64   `json:"back_line,omitempty"`
	// Cut says why the end of the file was not read.
	Cut string `json:"cut,omitempty"`

	first, last headgate.Instant
	back        time.Duration
	backLine    int64
	skipped     [logs.SkipCount]int64
}
