package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// conns is a listener whose connections know the framing of what they read. TLS is
// beneath that: net/http, which takes the bytes of a tls.Conn from it itself, is given a
// connection like any other, and finds HTTP/2 by its preface.
type conns struct {
	net.Listener

	tls *tls.Config // nil without TLS
	log *slog.Logger
}

// newConns adds the protocols to the TLS configuration that a client may choose.
func newConns(ln net.Listener, secured *tls.Config, to *slog.Logger) *conns {
	if secured != nil {
		secured = secured.Clone()
		for _, protocol := range [...]string{"h2", "http/1.1"} {
			if !slices.Contains(secured.NextProtos, protocol) {
				secured.NextProtos = append(secured.NextProtos, protocol)
			}
		}
	}
	return &conns{Listener: ln, tls: secured, log: to}
}

// Accept implements net.Listener. It waits for no client: the handshake is a part of
// the first Read.
func (l *conns) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, log: l.log}
	if l.tls != nil {
		c.secure = tls.Server(inner, l.tls)
		c.Conn = c.secure
	}
	return c, nil
}

// conn is a client's connection. It is read by one goroutine at a time.
type conn struct {
	net.Conn

	log     *slog.Logger
	secure  *tls.Conn            // nil without TLS
	state   *tls.ConnectionState // after the handshake
	preface preface              // of what is read with TLS
	frames  framing
	folded  atomic.Uint64 // that of frames, for handlers
	handled atomic.Uint64 // requests of HTTP/1 that have reached a handler
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.secure != nil && c.state == nil {
		if err := c.shake(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if c.secure != nil && c.preface.scan(p[:n]) {
		if client := below(c); client != nil {
			client.multiplexed.Store(true)
		}
	}
	c.frames.scan(p[:n])
	if c.frames.folded != 0 {
		c.folded.Store(c.frames.folded)
	}
	return n, err
}

// shake takes the client's handshake. The deadline is that of the first request's
// header, which net/http has set.
func (c *conn) shake() error {
	err := c.secure.HandshakeContext(context.Background()) // The connection's deadline and Close end it.
	if err == nil {
		state := c.secure.ConnectionState()
		if err = allowedByHTTP2(&state); err == nil {
			c.state = &state
			return nil
		}
	}
	reason := err.Error()
	if record, found := errors.AsType[tls.RecordHeaderError](err); found && record.Conn != nil && looksLikeHTTP(record.RecordHeader) {
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis port speaks HTTPS: write https:// in the address.\n")
		reason = "the client sent HTTP without TLS"
	}
	_ = c.Close()
	// Any client can cause it: it is for who looks for it.
	c.log.Debug("a TLS handshake failed", "remote", c.RemoteAddr().String(), "error", reason)
	return err
}

// allowedByHTTP2 refuses the ciphers of TLS 1.2 that HTTP/2 forbids (RFC 9113, appendix
// A), of those that Go offers.
func allowedByHTTP2(state *tls.ConnectionState) error {
	name := tls.CipherSuiteName(state.CipherSuite)
	if state.NegotiatedProtocol == "h2" && state.Version < tls.VersionTLS13 &&
		(strings.Contains(name, "_CBC_") || !strings.HasPrefix(name, "TLS_ECDHE_")) {
		return fmt.Errorf("proxy: %s is not allowed with HTTP/2", name)
	}
	return nil
}

// looksLikeHTTP reports whether the begin of a record is that of a request.
func looksLikeHTTP(record [5]byte) bool {
	switch string(record[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	default:
		return false
	}
}

// CloseWrite tells the client that nothing more comes.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// connKey is the key of a request's *conn in its context.
type connKey struct{}

// connOf gives the connection of a request; nil where there is none, in tests.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// enter notes that a request has reached its handler. It tells r of TLS.
func (c *conn) enter(r *http.Request) {
	if c == nil {
		return
	}
	if c.state != nil {
		r.TLS = c.state
	}
	if r.ProtoMajor == 1 {
		c.handled.Add(1)
	}
}

// isFolded reports whether the header of the request, which has entered, was malformed in
// a way that net/http hides. At the end of the body it reports the same of the trailer.
func (c *conn) isFolded(r *http.Request) bool {
	if c == nil || r.ProtoMajor != 1 {
		return false
	}
	folded := c.folded.Load()
	return folded != 0 && c.handled.Load() >= folded
}
