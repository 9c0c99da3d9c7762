package logs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine bounds a line without its end. Longer lines are malformed.
const MaxLine = 1 << 20

// smallBuffer is the size of a line buffer at the start, and after a long line. The format is found in as many bytes.
const smallBuffer = 64 << 10

// CutError says that a compressed file ends before its end, or is damaged. The lines before were read.
type CutError struct {
	Name  string
	Lines int64
	Err   error
}

// Error says where the file ends.
func (e *CutError) Error() string {
	return fmt.Sprintf("%s: %v after %d lines: the file is cut or damaged, and the lines after them are missing", e.Name, e.Err, e.Lines)
}

// Unwrap returns the cause.
func (e *CutError) Unwrap() error { return e.Err }

// counted counts the bytes of a file.
type counted struct {
	from io.Reader
	n    int64
}

// Read implements io.Reader.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.n += int64(n)
	return n, err
}

// source has the lines of a stream.
type source struct {
	name    string
	counted *counted
	size    int64
	from    io.Reader
	zipped  bool
	buffer  []byte // buffer[at:end] is read and not yet taken
	at, end int
	err     error // of from
	number  int64 // of the last line
}

// newSource finds out whether a stream is compressed, and reads its start.
func newSource(from io.Reader, name string) (*source, error) {
	s := &source{name: name, counted: &counted{from: from}, buffer: make([]byte, smallBuffer)}
	start := bufio.NewReaderSize(s.counted, smallBuffer)
	s.from = start
	if magic, err := start.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzip, err := gzip.NewReader(start)
		if err != nil {
			return nil, &CutError{name, 0, err}
		}
		s.from, s.zipped = unzip, true
	}
	for s.err == nil { // The sample has a whole line, unless the first is longer than any.
		if s.end == len(s.buffer) {
			if bytes.IndexByte(s.buffer, '\n') >= 0 || s.end > MaxLine {
				break
			}
			s.room()
		}
		s.fill()
	}
	if bom := []byte("\xef\xbb\xbf"); bytes.HasPrefix(s.buffer[:s.end], bom) {
		s.at = len(bom)
	}
	return s, nil
}

// sample has the lines at the start of the stream.
func (s *source) sample() []byte {
	all := s.buffer[s.at:s.end]
	if last := bytes.LastIndexByte(all, '\n'); last >= 0 && !errors.Is(s.err, io.EOF) {
		return all[:last+1]
	}
	return all
}

// fill reads more bytes into the buffer, which has room.
func (s *source) fill() {
	n, err := s.from.Read(s.buffer[s.end:])
	s.end += n
	s.err = err
}

// next returns the next line without its end, valid until the next call. long says that only its start is returned. next leaves out empty
// lines.
func (s *source) next() (line []byte, long bool, err error) {
	for {
		line, long, err = s.line()
		if err != nil {
			return nil, false, err
		}
		if s.number++; len(line) > 0 {
			return line, long, nil
		}
	}
}

func (s *source) line() (line []byte, long bool, err error) {
	for searched := s.at; ; {
		if end := bytes.IndexByte(s.buffer[searched:s.end], '\n'); end >= 0 {
			line = s.buffer[s.at : searched+end]
			s.at = searched + end + 1
			line = bytes.TrimSuffix(line, []byte{'\r'})
			return line, len(line) > MaxLine, nil
		}
		if s.err != nil {
			return s.last()
		}
		if s.end-s.at > MaxLine {
			return s.tooLong()
		}
		searched = s.room()
		s.fill()
	}
}

// room moves the rest of the buffer to its start, or makes a larger buffer. It returns where new bytes begin.
func (s *source) room() int {
	rest := s.end - s.at
	switch {
	case rest == len(s.buffer):
		larger := make([]byte, min(2*len(s.buffer), MaxLine+2))
		copy(larger, s.buffer[s.at:s.end])
		s.buffer = larger
	case len(s.buffer) > smallBuffer && rest < smallBuffer/2:
		small := make([]byte, smallBuffer)
		copy(small, s.buffer[s.at:s.end])
		s.buffer = small
	case s.at > 0:
		copy(s.buffer, s.buffer[s.at:s.end])
	}
	s.at, s.end = 0, rest
	return rest
}

// last returns a last line without an end. That of a cut file is incomplete, and left out.
func (s *source) last() (line []byte, long bool, err error) {
	if !errors.Is(s.err, io.EOF) {
		if s.zipped {
			return nil, false, &CutError{s.name, s.number, s.err}
		}
		return nil, false, fmt.Errorf("%s: %w after %d lines", s.name, s.err, s.number)
	}
	if s.at == s.end {
		return nil, false, io.EOF
	}
	line = s.buffer[s.at:s.end]
	s.at = s.end
	return bytes.TrimSuffix(line, []byte{'\r'}), len(line) > MaxLine, nil
}

// tooLong reads past a line. It keeps only its first bytes.
func (s *source) tooLong() (line []byte, long bool, err error) {
	start := bytes.Clone(s.buffer[s.at : s.at+MaxRaw])
	s.buffer = make([]byte, smallBuffer)
	s.at, s.end = 0, 0
	for s.err == nil {
		s.fill()
		if end := bytes.IndexByte(s.buffer[:s.end], '\n'); end >= 0 {
			s.at = end + 1
			return start, true, nil
		}
		s.end = 0
	}
	return start, true, nil
}
