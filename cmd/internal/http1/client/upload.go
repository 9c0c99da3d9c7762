package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// uploadWait is how long the end of an exchange waits for the rest of the request before
// it closes the connection. net/http's Transport waits as long.
const uploadWait = 50 * time.Millisecond

// upload sends the body of one request, in a goroutine of its own.
type upload struct {
	conn    *conn
	body    io.Reader
	length  int64 // -1 sends chunks
	idle    time.Duration
	timeout time.Duration
	trace   *httptrace.ClientTrace

	reading atomic.Int32  // readIdle, readPending or readStopped
	done    chan struct{} // closed at the end
	sent    bool          // the whole request is written; valid after done

	mu     sync.Mutex
	failed error // ends the exchange, unless the answer came first
}

// The values of upload.reading.
const (
	readIdle    int32 = iota
	readPending       // a Read is in progress
	readStopped       // no Read may start
)

var errStopped = errors.New("http1: the exchange ended before the request's body was sent")

func startUpload(ctx context.Context, c *conn, r *Request, config *Config) *upload {
	u := &upload{
		conn: c, body: r.Body, length: r.Length, idle: config.BodyIdle, timeout: config.Timeout,
		trace: httptrace.ContextClientTrace(ctx), done: make(chan struct{}),
	}
	go u.run()
	return u
}

// run sends the body, and then starts the time in which the service must answer.
func (u *upload) run() {
	defer close(u.done)
	err := u.send()
	if u.trace != nil && u.trace.WroteRequest != nil {
		u.trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
	}
	u.sent = err == nil
	if u.failure() != nil {
		u.conn.close()
		return
	}
	// A failed write may mean that the service has answered without reading the body.
	u.conn.bound(time.Now(), u.timeout)
}

func (u *upload) send() error {
	buf := getUploadBuffer()
	defer buf.release()
	if u.length < 0 {
		return u.sendChunks(buf)
	}
	return u.sendBytes(buf)
}

// sendBytes sends a body of known length. It also reads the end of the body, because the
// body may be longer, and because its owner may need to know that it was read to the end.
func (u *upload) sendBytes(buf *uploadBuffer) error {
	for left := u.length; ; {
		n, end, err := u.read(buf[:])
		if err != nil {
			return err
		}
		if left -= int64(n); left < 0 {
			return u.fail(fmt.Errorf("http1: the request's body is longer than its length of %d bytes", u.length))
		}
		if n > 0 {
			if err := u.write(buf[:n]); err != nil {
				return err
			}
		}
		if end && left > 0 {
			return u.fail(fmt.Errorf("http1: the request's body is %d bytes shorter than its length of %d bytes", left, u.length))
		}
		if end {
			return nil
		}
	}
}

const (
	// chunkStart has space for the length of a chunk: four digits and CRLF.
	chunkStart = 6
	lastChunk  = "0\r\n\r\n"
	chunkEnd   = len("\r\n" + lastChunk)
)

// sendChunks sends each piece of the body as a chunk, as soon as it is read.
func (u *upload) sendChunks(buf *uploadBuffer) error {
	for {
		n, end, err := u.read(buf[chunkStart : len(buf)-chunkEnd])
		if err != nil {
			return err
		}
		chunk := buf[chunkStart:chunkStart]
		if n > 0 {
			size := strconv.FormatInt(int64(n), 16) + "\r\n"
			start := chunkStart - len(size)
			copy(buf[start:], size)
			chunk = buf[start : chunkStart+n]
			chunk = append(chunk, '\r', '\n')
		}
		if end {
			chunk = append(chunk, lastChunk...)
		}
		if len(chunk) > 0 {
			if err := u.write(chunk); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// read reads from the body, unless the exchange has ended.
func (u *upload) read(p []byte) (n int, end bool, err error) {
	if !u.reading.CompareAndSwap(readIdle, readPending) {
		return 0, false, errStopped
	}
	n, err = u.body.Read(p)
	u.reading.CompareAndSwap(readPending, readIdle)
	switch err {
	case nil:
		return n, false, nil
	case io.EOF:
		return n, true, nil
	}
	return n, false, u.fail(err)
}

func (u *upload) write(p []byte) error {
	err := u.conn.write(p, u.idle)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return u.fail(err) // The service neither reads nor, presumably, answers.
	}
	return err
}

// fail notes an error that ends the exchange.
func (u *upload) fail(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failed = err
	return err
}

// failure returns the error of fail. A nil upload means a request without a body.
func (u *upload) failure() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failed
}

// end stops reading the body, without waiting for a Read in progress.
func (u *upload) end() {
	if u != nil {
		u.reading.Store(readStopped)
	}
}

// complete waits for the end of the request for up to uploadWait, and returns whether the
// whole request was written.
func (u *upload) complete() bool {
	if u == nil {
		return true
	}
	select {
	case <-u.done:
		return u.sent
	default:
	}
	timer := time.NewTimer(uploadWait)
	defer timer.Stop()
	select {
	case <-u.done:
		return u.sent
	case <-timer.C:
		return false
	}
}
