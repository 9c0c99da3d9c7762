package openloop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Target is a server, and the request that a Load sends.
type Target struct {
	// URL has the scheme http or https. The certificate is not verified.
	URL string
	// Connections is the number of open connections. 0 opens a connection for each request.
	Connections int
	// Key is the value of X-Api-Key. "" leaves the field out.
	Key string
	// Status is the status of every answer. 0 means 200.
	Status int
	// HTTP2 selects HTTP/2, which must be over TLS.
	HTTP2 bool
}

// once sends a request on a connection of its own.
func (t *Target) once(ctx context.Context) error {
	c, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // The answer has been read.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := c.send(); err != nil {
		return err
	}
	_, err = c.answer()
	return err
}

// connect opens a connection.
func (t *Target) connect(ctx context.Context) (connection, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}
	if t.HTTP2 && u.Scheme != "https" {
		return nil, fmt.Errorf("HTTP/2 to %s: use an https URL", t.URL)
	}
	var conn net.Conn
	if u.Scheme == "https" {
		protocol := "http/1.1"
		if t.HTTP2 {
			protocol = http2.NextProtoTLS
		}
		//nolint:gosec // The benchmarks make their certificates themselves.
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}}
		conn, err = dialer.DialContext(ctx, "tcp", u.Host)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	}
	if err != nil {
		return nil, err
	}
	if t.HTTP2 {
		return t.newHTTP2(conn, u)
	}
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n", u.RequestURI(), u.Host)
	if t.Key != "" {
		request = fmt.Appendf(request, "X-Api-Key: %s\r\n", t.Key)
	}
	if t.Connections == 0 {
		request = append(request, "Connection: close\r\n"...)
	}
	return &http1Connection{Conn: conn, target: t, request: append(request, "\r\n"...), reader: bufio.NewReaderSize(conn, 32<<10)}, nil
}

// check compares the status of an answer with that of the target.
func (t *Target) check(status int) error {
	want := t.Status
	if want == 0 {
		want = http.StatusOK
	}
	if status != want {
		return fmt.Errorf("got status %d, want %d", status, want)
	}
	return nil
}

type http1Connection struct {
	net.Conn

	target   *Target
	request  []byte
	reader   *bufio.Reader
	answered int
}

func (c *http1Connection) send() error {
	_, err := c.Write(c.request)
	return err
}

func (c *http1Connection) answer() (int, error) {
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return 0, err
	}
	c.answered++
	return c.answered - 1, c.target.check(response.StatusCode)
}

// maxStreams is the number of requests that a connection sends before it waits for an answer. Servers allow 100 and more.
const maxStreams = 64

// http2Connection sends requests on streams. Its windows are so large that it need not enlarge them.
type http2Connection struct {
	net.Conn

	target  *Target
	fields  []byte
	streams chan struct{} // has a value for each stream without an answer
	closed  chan struct{}
	close   sync.Once
	framer  *http2.Framer
	write   sync.Mutex // guards the writes of framer
	next    uint32
}

func (t *Target) newHTTP2(conn net.Conn, u *url.URL) (connection, error) {
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	encoder.SetMaxDynamicTableSize(0) // Then the same bytes have the same meaning in every request.
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: http.MethodGet},
		{Name: ":scheme", Value: u.Scheme},
		{Name: ":authority", Value: u.Host},
		{Name: ":path", Value: u.RequestURI()},
		{Name: "x-api-key", Value: t.Key},
	} {
		if err := encoder.WriteField(f); err != nil {
			return nil, err
		}
	}
	c := &http2Connection{
		Conn: conn, target: t, fields: fields.Bytes(), next: 1,
		streams: make(chan struct{}, maxStreams), closed: make(chan struct{}), framer: http2.NewFramer(conn, conn),
	}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err := io.WriteString(conn, http2.ClientPreface)
	const window = 1 << 30
	err = errors.Join(err, c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}),
		c.framer.WriteWindowUpdate(0, window))
	return c, err
}

func (c *http2Connection) send() error {
	select {
	case c.streams <- struct{}{}:
	case <-c.closed:
		return net.ErrClosed
	}
	c.write.Lock()
	defer c.write.Unlock()
	id := c.next
	c.next += 2
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields, EndStream: true, EndHeaders: true})
}

// Close also ends a send that waits for an answer.
func (c *http2Connection) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *http2Connection) answer() (int, error) {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return 0, err
		}
		ended := false
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			err = c.acknowledge(f)
		case *http2.PingFrame:
			err = c.pong(f)
		case *http2.MetaHeadersFrame:
			status, _ := strconv.Atoi(f.PseudoValue("status"))
			err, ended = c.target.check(status), f.StreamEnded()
		case *http2.DataFrame:
			ended = f.StreamEnded()
		case *http2.RSTStreamFrame:
			err = fmt.Errorf("stream %d was reset: %v", f.StreamID, f.ErrCode)
		case *http2.GoAwayFrame:
			err = fmt.Errorf("the server closes the connection: %v", f.ErrCode)
		}
		if err != nil {
			return 0, err
		}
		if ended {
			<-c.streams
			return int(frame.Header().StreamID) / 2, nil
		}
	}
}

func (c *http2Connection) acknowledge(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	c.write.Lock()
	defer c.write.Unlock()
	return c.framer.WriteSettingsAck()
}

func (c *http2Connection) pong(f *http2.PingFrame) error {
	if f.IsAck() {
		return nil
	}
	c.write.Lock()
	defer c.write.Unlock()
	return c.framer.WritePing(true, f.Data)
}
