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
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/server"
	"github.com/headgate/headgate/guard/report"
)

// conns is a listener whose connections track HTTP/1 framing. TLS ends below net/http:
// given a tls.Conn, net/http would read its bytes directly and bypass the tracking.
// net/http then detects HTTP/2 by its preface.
type conns struct {
	net.Listener

	tls    *tls.Config // nil without TLS
	log    *slog.Logger
	divert func(*conn) bool
}

// newConns returns a listener on ln. With TLS, it offers HTTP/2 and HTTP/1.1 by ALPN. Accept
// does not return a connection for which divert returns true.
func newConns(ln clients, secured *tls.Config, to *slog.Logger, divert func(*conn) bool) *conns {
	if secured != nil {
		secured = secured.Clone()
		for _, protocol := range [...]string{"h2", "http/1.1"} {
			if !slices.Contains(secured.NextProtos, protocol) {
				secured.NextProtos = append(secured.NextProtos, protocol)
			}
		}
	}
	return &conns{Listener: ln, tls: secured, log: to, divert: divert}
}

// Accept implements net.Listener. Accept does not wait for the TLS handshake, because the
// first Read does the handshake.
func (l *conns) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, log: l.log, path: report.PathOff}
		c.client, _ = inner.(*clientConn)
		if l.tls != nil {
			c.secure = tls.Server(inner, l.tls)
			c.Conn = c.secure
		}
		if !l.divert(c) {
			return c, nil
		}
	}
}

// conn is a client's connection. One goroutine at a time reads it.
type conn struct {
	net.Conn

	client   *clientConn
	log      *slog.Logger
	path     report.Path          // of the requests that a handler gets from this connection
	fallback *server.FallbackConn // given by the fast path to net/http; nil for other connections
	secure   *tls.Conn            // nil without TLS
	state    *tls.ConnectionState // after the handshake
	preface  preface              // of the bytes inside TLS
	framing  http1.Framing
	from     address // the peer, of a connection of the fast path that has had a request
	known    bool    // from is set
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.secure != nil && c.state == nil {
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if c.secure != nil && c.preface.scan(p[:n]) {
		c.client.multiplex()
	}
	c.framing.Scan(p[:n])
	return n, err
}

// handshake does the server's TLS handshake. The deadline that net/http set for the
// first request's header also bounds the handshake.
func (c *conn) handshake() error {
	err := c.secure.HandshakeContext(context.Background()) // The connection's deadline and Close end the handshake.
	if err == nil {
		state := c.secure.ConnectionState()
		if err = allowedByHTTP2(&state); err == nil {
			c.state = &state
			return nil
		}
	}
	reason := err.Error()
	record, found := errors.AsType[tls.RecordHeaderError](err)
	if found && record.Conn != nil && http1.LooksLikeRequest(record.RecordHeader) {
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis port speaks HTTPS: write https:// in the address.\n")
		reason = "the client sent HTTP without TLS"
	}
	_ = c.Close()
	// The level is debug because any client can cause this failure.
	c.log.Debug("TLS handshake failed", "remote", c.RemoteAddr().String(), "error", reason)
	return err
}

// allowedByHTTP2 returns an error for a TLS 1.2 cipher suite that HTTP/2 forbids
// (RFC 9113, appendix A). It covers the suites that Go supports.
func allowedByHTTP2(state *tls.ConnectionState) error {
	name := tls.CipherSuiteName(state.CipherSuite)
	if state.NegotiatedProtocol == "h2" && state.Version < tls.VersionTLS13 &&
		(strings.Contains(name, "_CBC_") || !strings.HasPrefix(name, "TLS_ECDHE_")) {
		return fmt.Errorf("proxy: %s is not allowed with HTTP/2", name)
	}
	return nil
}

// CloseWrite closes the sending side of the connection.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// connKey is the context key of a request's *conn.
type connKey struct{}

// connOf returns the connection of a request, or nil in tests without one.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// enter notes that a request has reached its handler, and sets r.TLS.
func (c *conn) enter(r *http.Request) {
	if c == nil {
		return
	}
	if c.state != nil {
		r.TLS = c.state
	}
	if r.ProtoMajor == 1 {
		c.framing.Enter()
	}
}

// address is the address of a peer. A peer on a unix socket has the zero address.
type address struct {
	netip.Addr

	text string // "" if it is not known yet
}

func addressOf(remote string) address { return address{Addr: peer(remote)} }

// String returns the text of a valid address.
func (a address) String() string {
	if a.text == "" {
		return a.Addr.String()
	}
	return a.text
}

// peerOf returns the address of the other end. Requests of one connection of the fast path come one after the other, and it is
// read once for them.
func (c *conn) peerOf(r *http.Request) address {
	if c == nil || c.path != report.PathFast || r.ProtoMajor != 1 {
		return addressOf(r.RemoteAddr)
	}
	if !c.known {
		c.from, c.known = addressOf(r.RemoteAddr), true
		c.from.text = c.from.String()
	}
	return c.from
}

// pathOf returns which server serves the requests of the connection.
func (c *conn) pathOf() report.Path {
	if c == nil {
		return report.PathOff
	}
	return c.path
}

// isMalformed reports whether the request was malformed in a way that net/http hides. After
// the end of the body the result also covers the trailer. The caller has called enter for
// the request.
func (c *conn) isMalformed(r *http.Request) bool {
	return c != nil && r.ProtoMajor == 1 && c.framing.Malformed()
}
