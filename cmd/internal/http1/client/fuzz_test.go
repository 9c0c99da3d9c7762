package client_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// script is a connection to a service that sends its bytes in two pieces and then closes.
type script struct {
	net.Conn

	pieces [][]byte
}

func (s *script) Read(p []byte) (int, error) {
	for len(s.pieces) > 0 {
		if len(s.pieces[0]) == 0 {
			s.pieces = s.pieces[1:]
			continue
		}
		n := copy(p, s.pieces[0])
		s.pieces[0] = s.pieces[0][n:]
		return n, nil
	}
	return 0, io.EOF
}

func (s *script) Write(p []byte) (int, error)     { return len(p), nil }
func (s *script) Close() error                    { return nil }
func (s *script) SetReadDeadline(time.Time) error { return nil }

// FuzzResponse compares each answer, in two pieces, with net/http's ReadResponse.
func FuzzResponse(f *testing.F) {
	for _, s := range stories {
		if len(s.text) > 4096 { // The fuzzer takes minutes to make variants of long seeds short.
			continue
		}
		f.Add([]byte(s.text), uint16(len(s.text)), s.method == http.MethodHead)
		f.Add([]byte(s.text), uint16(len(s.text)/2), s.method == http.MethodHead)
	}
	f.Add([]byte("HTTP/1.1 200 OK\r\nA b: c\r\n\r\n"), uint16(0), true) // a name that net/http reads and would not write
	f.Fuzz(func(t *testing.T, text []byte, at uint16, head bool) {
		first := min(int(at), len(text))
		conns := 0
		c := client.New(client.Config{MaxIdle: 1, Dial: func(context.Context) (net.Conn, error) {
			if conns++; conns > 1 {
				return nil, io.EOF
			}
			return &script{pieces: [][]byte{text[:first], text[first:]}}, nil
		}})
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		in := bufio.NewReader(bytes.NewReader(text))
		for number := range 3 { // The next answers come from the same connection, if it is kept.
			want, wantErr := readFinal(in, method) //nolint:bodyclose // because its bytes are in memory.
			var a client.Answer
			err := c.Do(t.Context(), &client.Request{Method: method, Target: "/", Host: "h"}, &a)
			if number > 0 && conns > 1 {
				return // The connection was not kept. The other tests cover when it must be.
			}
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("answer %d: error %v, net/http: %v", number, err, wantErr)
			}
			if err != nil {
				return
			}
			compareAnswers(t, &a, want, method)
			a.Close()
		}
	})
}

// readFinal reads the next answer that is not interim.
func readFinal(in *bufio.Reader, method string) (*http.Response, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil || resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

func compareAnswers(t *testing.T, a *client.Answer, want *http.Response, method string) {
	t.Helper()
	same := func(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }
	maps.DeleteFunc(want.Header, func(name string, _ []string) bool { // The client leaves them out: net/http would not write them.
		return !httpguts.ValidHeaderFieldName(name)
	})
	length := want.ContentLength
	if method == http.MethodHead {
		length = 0
	}
	if a.Status != want.StatusCode || a.Length != length || !same(a.Header.Header(), want.Header) {
		t.Fatalf("answer %+v, net/http %+v", a, want)
	}
	got, err := io.ReadAll(a)
	body, wantErr := io.ReadAll(want.Body)
	if !bytes.Equal(got, body) || (err != nil) != (wantErr != nil) || errors.Is(err, io.ErrUnexpectedEOF) != errors.Is(wantErr, io.ErrUnexpectedEOF) {
		t.Fatalf("body %q, %v, net/http %q, %v", got, err, body, wantErr)
	}
	if err == nil && !same(a.Trailer, want.Trailer) {
		t.Fatalf("trailer %v, net/http %v", a.Trailer, want.Trailer)
	}
}
