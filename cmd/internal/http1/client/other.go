package client

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
)

// other is an answer that net/http reads, because it is not plain.
type other struct {
	answer *Answer
	reader *bufio.Reader // reads from other
	resp   *http.Response
	limit  int64 // how many bytes may still be read
	// timedOut says that reading timed out. net/http may hide that behind another error.
	timedOut bool
	ended    bool // the body was read to its end
}

// otherTable keeps the memory for the next answer.
var otherTable = sync.Pool{New: func() any {
	o := &other{}
	o.reader = bufio.NewReaderSize(o, otherReaderBytes)
	return o
}}

// release returns the memory.
func (o *other) release() {
	o.reader.Reset(o)
	*o = other{reader: o.reader}
	otherTable.Put(o)
}

// otherReaderBytes is the size of net/http's buffer. The size also bounds the trailer.
const otherReaderBytes = 4096

// Read implements io.Reader: it reads what the service sends, up to limit.
func (o *other) Read(p []byte) (n int, err error) {
	if o.limit <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	p = p[:min(int64(len(p)), o.limit)]
	if a := o.answer; a.next < a.end {
		n = copy(p, a.buffer.bytes[a.next:a.end])
		a.next += n
	} else {
		n, err = a.conn.read(p)
		o.timedOut = err == errTimeout //nolint:errorlint // because read returns the bare error.
	}
	o.limit -= int64(n)
	return n, err
}

// receiveOther reads the header of the final answer with net/http.
func (a *Answer) receiveOther(r *Request) error {
	most := int64(a.client.config.MaxHeader)
	o, _ := otherTable.Get().(*other)
	o.answer, o.limit = a, most
	a.other = o
	request := &http.Request{Method: r.Method}
	for {
		resp, err := http.ReadResponse(o.reader, request) //nolint:bodyclose // because the connection is closed instead.
		switch {
		case err == nil:
		case o.timedOut:
			return errTimeout
		case o.limit <= 0:
			return fmt.Errorf("http1: the header of the service's answer exceeds %d bytes", most)
		default:
			return err
		}
		if !isInterim(resp.StatusCode) {
			o.resp = resp
			break
		}
		if r.Interim == nil { // All headers together must stay below the limit.
			continue
		}
		if err := r.Interim(resp.StatusCode, resp.Header); err != nil {
			return err
		}
		o.limit = most
	}
	o.limit = math.MaxInt64
	a.takeOther(o, r.Method == http.MethodHead)
	return nil
}

// isInterim reports whether another answer follows. 101 ends the use of HTTP.
func isInterim(status int) bool {
	return status >= http.StatusContinue && status < http.StatusOK && status != http.StatusSwitchingProtocols
}

// takeOther takes a final answer.
func (a *Answer) takeOther(o *other, head bool) {
	resp := o.resp
	a.Status, a.Trailer = resp.StatusCode, resp.Trailer
	a.Header.Load(resp.Header)
	a.Header.DeleteFunc(isNoName) // net/http reads such names, and does not write them.
	a.closing = a.closing || resp.Close || resp.StatusCode < http.StatusOK
	if head || resp.ContentLength == 0 {
		o.ended, a.err = true, io.EOF
		return
	}
	a.Length = resp.ContentLength
}

// readOther is Read for an answer that is not plain.
func (a *Answer) readOther(p []byte) (int, error) {
	n, err := a.other.resp.Body.Read(p)
	if err == io.EOF {
		a.other.ended, a.err, a.Trailer = true, io.EOF, a.other.resp.Trailer
		return n, io.EOF
	}
	return n, a.broken(err)
}

// complete reports whether the body was read to its end, and nothing follows.
func (o *other) complete() bool {
	return o.ended && o.reader.Buffered() == 0 && o.answer.next == o.answer.end
}
