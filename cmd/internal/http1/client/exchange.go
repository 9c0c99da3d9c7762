package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// reset prepares the Answer for a request.
func (a *Answer) reset(client *Client) {
	a.client, a.buffer, a.upload, a.other = client, getBuffer(), nil, nil
	a.Status, a.Length, a.Trailer = 0, 0, nil
	a.next, a.end, a.left, a.err, a.answered, a.closing = 0, 0, 0, nil, false, false
	a.Header.Reset()
}

// exchange sends the request and reads the header of the final answer. After an error, the
// connection is closed.
func (a *Answer) exchange(ctx context.Context, c *conn, head []byte, r *Request) error {
	a.conn = c
	c.start(ctx)
	n, err := a.send(ctx, head, r)
	if err == nil {
		err = a.receive(n, r)
	}
	if err == nil {
		c.unbound()
		return nil
	}
	if failure := a.upload.failure(); failure != nil {
		err = failure
	}
	err = c.cause(err)
	a.upload.end()
	c.unwatch()
	c.close()
	a.conn, a.upload = nil, nil
	return err
}

// send sends the request and reads the first bytes of the answer into the buffer. The head
// may be in the same buffer.
func (a *Answer) send(ctx context.Context, head []byte, r *Request) (n int, err error) {
	config := &a.client.config
	a.closing = r.Header != nil && httpguts.HeaderValuesContainsToken(r.Header.Lines("Connection"), "close")
	switch {
	case !r.hasBody():
		n, err = a.conn.ask(head, a.buffer.bytes, config, true)
	case r.atHand(cap(head) - len(head)):
		if head, err = r.appendBody(ctx, head); err == nil {
			n, err = a.conn.ask(head, a.buffer.bytes, config, false)
		}
	default:
		if err = a.conn.write(head, config.BodyIdle); err == nil {
			a.upload = startUpload(ctx, a.conn, r, config)
			n, err = a.conn.read(a.buffer.bytes)
		}
	}
	if errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("http1: the service closed the connection without an answer: %w", err)
	}
	return n, err
}

// receive reads the header of the final answer, after n bytes of it.
func (a *Answer) receive(n int, r *Request) error {
	a.answered, a.end = true, n
	if a.receivePlain(r.Method == http.MethodHead) {
		return nil
	}
	return a.receiveOther(r)
}

// receivePlain reads the header if it is plain and complete.
func (a *Answer) receivePlain(head bool) bool {
	b := a.buffer.bytes[:a.end]
	if !http1.StartsPlain(b) {
		return false
	}
	const emptyLine = "\r\n\r\n"
	n := bytes.Index(b, []byte(emptyLine)) + len(emptyLine)
	if n < len(emptyLine) || n > a.client.config.MaxHeader {
		return false
	}
	resp, ok := a.Header.ParseResponse(string(b[:n]), head)
	if !ok {
		return false
	}
	a.Status, a.Length, a.left, a.next = resp.Status, resp.Length, resp.Length, n
	a.closing = a.closing || resp.Close
	return true
}
