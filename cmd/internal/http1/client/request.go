package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// Request is a request to the service. The client writes the fields in the order of Header, and otherwise in the
// form of net/http's Transport.
type Request struct {
	Method, Target, Host string
	// Header has no hop-by-hop fields. Host, Content-Length, Transfer-Encoding and Trailer
	// are ignored: the other fields of Request decide. nil means no fields.
	Header *http1.List
	// Body is nil without a body.
	Body io.Reader
	// Length is the length of Body. -1 sends the body in chunks, and 0 sends no body.
	Length int64
	// Interim receives each 1xx response except 101. An error aborts the exchange. nil
	// ignores the responses.
	Interim func(status int, h http.Header) error
}

func (r *Request) hasBody() bool { return r.Body != nil && r.Length != 0 }

var (
	errMethod = errors.New("http1: the request's method is not a token")
	errTarget = errors.New("http1: the request's target is empty, or has a blank or a control character")
)

// appendHead appends the head of the request to b.bytes[:0].
func (b *buffer) appendHead(r *Request) ([]byte, error) {
	head := b.bytes[:0]
	if !isToken(r.Method) {
		return head, errMethod
	}
	if !isTarget(r.Target) {
		return head, errTarget
	}
	host, err := cleanHost(r.Host)
	if err != nil {
		return head, err
	}
	head = append(append(head, r.Method...), ' ')
	head = append(append(head, r.Target...), " HTTP/1.1\r\nHost: "...)
	head = append(append(head, host...), '\r', '\n')
	if r.Header == nil {
		return append(appendFraming(head, r), '\r', '\n'), nil
	}
	if agent := r.Header.Get("User-Agent"); agent != "" {
		if head, err = appendField(head, "User-Agent", agent); err != nil {
			return head, err
		}
	}
	head, err = appendFields(appendFraming(head, r), r.Header)
	return append(head, '\r', '\n'), err
}

// appendFraming appends the field that says where the body ends.
func appendFraming(head []byte, r *Request) []byte {
	switch {
	case r.hasBody() && r.Length < 0:
		return append(head, "Transfer-Encoding: chunked\r\n"...)
	case r.hasBody():
		head = append(head, "Content-Length: "...)
		return append(strconv.AppendInt(head, r.Length, 10), '\r', '\n')
	case r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch:
		return append(head, "Content-Length: 0\r\n"...) // Many servers expect the field.
	}
	return head
}

// appendFields appends the other fields.
func appendFields(head []byte, l *http1.List) ([]byte, error) {
	var err error
	for i := range l.Len() {
		name, value := l.Line(i)
		if isWritten(name) {
			continue
		}
		if head, err = appendField(head, name, value); err != nil {
			return head, err
		}
	}
	return head, nil
}

// isWritten reports whether appendHead writes a field before the others, or ignores it.
func isWritten(name string) bool {
	switch name {
	case "Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	}
	return false
}

func appendField(head []byte, name, value string) ([]byte, error) {
	if !isToken(name) {
		return head, fmt.Errorf("http1: invalid header field name %q", name)
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return head, fmt.Errorf("http1: invalid header field value for %q", name) // The value may be secret.
	}
	head = append(append(head, name...), ':', ' ')
	return append(append(head, textproto.TrimString(value)...), '\r', '\n'), nil
}

func isNoName(s string) bool { return !isToken(s) }

func isToken(s string) bool { return httpguts.ValidHeaderFieldName(s) }

// isTarget reports whether s cannot end the request line.
func isTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return s != ""
}

// cleanHost returns what net/http's Transport writes for a host.
func cleanHost(host string) (string, error) {
	host, err := httpguts.PunycodeHostPort(host)
	if err != nil {
		return "", fmt.Errorf("http1: invalid host: %w", err)
	}
	if !httpguts.ValidHostHeader(host) {
		return "", nil
	}
	return removeZone(host), nil
}

// removeZone removes the zone of an IPv6 address (RFC 6874).
func removeZone(host string) string {
	if !strings.HasPrefix(host, "[") {
		return host
	}
	end := strings.LastIndexByte(host, ']')
	if end < 0 {
		return host
	}
	zone := strings.LastIndexByte(host[:end], '%')
	if zone < 0 {
		return host
	}
	return host[:zone] + host[end:]
}
