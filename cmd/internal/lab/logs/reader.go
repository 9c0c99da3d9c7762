package logs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// MaxRaw bounds the bytes of a line that Raw keeps.
const MaxRaw = 1 << 10

// TimeIs says what the time of a combined log is.
type TimeIs uint8

const (
	// TimeIsUsual is what the format says: the arrival, unless the preset is nginx.
	TimeIsUsual TimeIs = iota
	// TimeIsArrival takes the time of a line as the arrival of the request.
	TimeIsArrival
	// TimeIsEnd takes it as the end of the answer: the arrival is earlier by the duration, where the line has it.
	TimeIsEnd
)

// Options say how a log is read. The zero value detects the format.
type Options struct {
	// Name is the name of the file in errors, and File its number in lines.
	Name string
	File int
	// Format is a name of Kinds; "" detects it from the first lines.
	Format string
	// Fields are those of a JSON log, beside those of the preset.
	Fields []Field
	// Parts are the key parts whose values Line.Parts has, such as header:X-Client-Id, in the form of rule.Part.String.
	Parts []string
	// TimeIs is the meaning of the time in a combined log.
	TimeIs TimeIs
}

// Reader reads the lines of one log. It is not safe for concurrent use.
type Reader struct {
	options Options
	source  *source
	format  *format
	file    io.Closer

	fields    *fieldSet
	clocks    clocks
	object    object
	times     lineTimes
	scratch   []byte // texts of the line that had escapes
	timeIsEnd bool
	other     string // the problem of a line of another form
	cookies   []cookiePart
	usual     []Value // of Parts on a line that has none of them
	seen      seen
	found     []bool // those of Options.Fields that a line has

	// The places in Options.Parts of headers that text formats have; -1 is none.
	refererPart, agentPart, forwardedPart, idPart int
}

// Open opens a file. The name - is standard input.
func Open(name string, o Options) (*Reader, error) {
	if o.Name == "" {
		o.Name = name
	}
	if name == "-" {
		return New(os.Stdin, o)
	}
	file, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: name a log that exists, or - for standard input", err)
	case err != nil:
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		_ = file.Close()
		return nil, fmt.Errorf("%s is a directory: name its files, like %s/*.log", name, strings.TrimRight(name, "/"))
	}
	r, err := New(file, o)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		r.source.size = info.Size()
	}
	r.file = file
	return r, nil
}

// New reads a log from a stream, which may be compressed with gzip. It reads the first lines.
func New(from io.Reader, o Options) (*Reader, error) {
	r := &Reader{options: o}
	var err error
	if r.source, err = newSource(from, o.Name); err != nil {
		return nil, err
	}
	if r.format, err = r.detect(r.source.sample()); err != nil {
		return nil, err
	}
	r.use(r.format)
	r.look(r.source.sample())
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Next reads the next line. A line that is no request has a Skip. The error is io.EOF after the last line, and a *CutError for a compressed
// file that ends early.
func (r *Reader) Next(l *Line) error {
	line, long, err := r.source.next()
	if err != nil {
		return err
	}
	r.parse(line, long, l)
	return nil
}

// parse reads a line. long says that it is only the start of a longer one.
func (r *Reader) parse(line []byte, long bool, l *Line) {
	l.reset(len(r.options.Parts))
	copy(l.Parts, r.usual)
	l.File, l.Number, l.Raw = r.options.File, r.source.number, line[:min(len(line), MaxRaw)]
	r.scratch = r.scratch[:0]
	if cap(r.scratch) > smallBuffer {
		r.scratch = nil
	}
	r.times.reset()
	if long {
		l.malformed("longer than 1 MiB")
		return
	}
	if !r.format.parse(r, line, l) {
		l.malformed(r.other)
	}
}

// Kind is the format of the log.
func (r *Reader) Kind() *Kind { return &kindsTable[r.format.kind] }

// Read is the number of bytes that were read of the file, before they were uncompressed. Size is the size of the file; 0 is unknown.
func (r *Reader) Read() int64 { return r.source.counted.n }

// Size is the size of the file; 0 is unknown.
func (r *Reader) Size() int64 { return r.source.size }

// Found reports whether one of the lines so far has Options.Fields[i], or no rule reads that part.
func (r *Reader) Found(i int) bool { return r.found[i] }

// EndIsTime reports whether the times of the lines are taken as the ends of answers.
func (r *Reader) EndIsTime() bool { return r.timeIsEnd }

// Resolution is the unit of the times in the first lines; 0 is unknown.
func (r *Reader) Resolution() time.Duration { return r.seen.resolution }

// HasDuration reports whether one of the first lines has a duration.
func (r *Reader) HasDuration() bool { return r.seen.duration }
