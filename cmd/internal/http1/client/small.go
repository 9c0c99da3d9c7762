package client

import (
	"context"
	"fmt"
	"io"
	"net/http/httptrace"
)

// atHand reports whether the whole body has arrived and is shorter than most bytes. It is then
// written with the head, without a goroutine.
func (r *Request) atHand(most int) bool {
	if !r.hasBody() || r.Length < 0 || r.Length >= int64(most) {
		return false
	}
	from, ok := r.Body.(interface{ AtHand() int })
	return ok && int64(from.AtHand()) >= r.Length
}

// appendBody reads the body, with its end, behind the head.
func (r *Request) appendBody(ctx context.Context, head []byte) ([]byte, error) {
	start := len(head)
	head, err := r.readBody(head, start+int(r.Length))
	switch {
	case err == io.EOF && len(head) == start+int(r.Length): //nolint:errorlint // because a body returns the bare io.EOF.
		err = nil
	case err == io.EOF, err == nil: //nolint:errorlint // as above.
		err = fmt.Errorf("http1: the request's body does not end at its length of %d bytes", r.Length)
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
	}
	return head, err
}

// readBody reads up to the position end, and then the end of the body.
func (r *Request) readBody(head []byte, end int) ([]byte, error) {
	for len(head) < end {
		n, err := r.Body.Read(head[len(head):end])
		if head = head[:len(head)+n]; err != nil {
			return head, err
		}
	}
	_, err := r.Body.Read(head[end : end+1])
	return head, err
}
