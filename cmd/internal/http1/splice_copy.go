package http1

import (
	"errors"
	"io"
	"net"
	"sync"
)

// WriteError is an error of the connection that Splice writes to. Other errors of Splice
// belong to the connection that it reads from.
type WriteError struct{ Err error }

// Error implements error.
func (e *WriteError) Error() string { return "http1: write: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Progress has the callbacks of Splice. Each may be nil.
type Progress struct {
	// BeforeWrite is called before bytes are written, after waiting for them. It is the
	// place to set a write deadline.
	BeforeWrite func()
	// Wrote is called after each write with the number of bytes.
	Wrote func(n int)
}

func (p Progress) beforeWrite() {
	if p.BeforeWrite != nil {
		p.BeforeWrite()
	}
}

func (p Progress) wrote(n int) {
	if p.Wrote != nil && n > 0 {
		p.Wrote(n)
	}
}

type copyBuffer [32 << 10]byte

var copyBufferTable = sync.Pool{New: func() any { return new(copyBuffer) }}

// copyBytes does the work of Splice through memory.
func copyBytes(dst, src net.Conn, n int64, p Progress) (moved int64, err error) {
	buf, _ := copyBufferTable.Get().(*copyBuffer)
	defer copyBufferTable.Put(buf)
	for moved < n {
		in, err := src.Read(buf[:min(n-moved, int64(len(buf)))])
		if in > 0 {
			p.beforeWrite()
			out, failed := dst.Write(buf[:in])
			moved += int64(out)
			p.wrote(out)
			if failed != nil {
				return moved, &WriteError{failed}
			}
		}
		switch {
		case errors.Is(err, io.EOF) && moved < n:
			return moved, io.ErrUnexpectedEOF
		case err != nil && moved < n:
			return moved, err
		}
	}
	return moved, nil
}
