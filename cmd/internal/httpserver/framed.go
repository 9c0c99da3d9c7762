package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// framedListener gives connections that follow the framing of their requests. TLS ends below net/http, which would read
// the bytes of a tls.Conn itself.
type framedListener struct {
	net.Listener

	tls    *tls.Config // nil without TLS
	log    *slog.Logger
	trusts func(netip.Addr) bool // nil trusts no peer
	conns  framedConns
}

// Accept implements net.Listener.
func (l *framedListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // because net/http compares the error.
	}
	c := &framedConn{Conn: inner, from: l}
	c.listened, _ = inner.(listened)
	l.conns.add(c)
	if l.tls == nil {
		return c, nil
	}
	secured := &securedConn{framedConn: c, secure: tls.Server(inner, l.tls), log: l.log}
	c.Conn = secured.secure
	return secured, nil
}

// framedConn is a connection of a framedListener.
type framedConn struct {
	net.Conn
	listened // the connection below TLS
	framedTraffic

	from    *framedListener
	framing http1.Framing
}

// Read implements net.Conn.
func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.count(n)
	c.framing.Scan(p[:n])
	return n, err //nolint:wrapcheck // because net/http compares the error.
}

// CloseWrite closes the sending side of the connection.
func (c *framedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // because net/http ignores the error.
	}
	return errors.ErrUnsupported
}

// framed returns the connection itself, also of a securedConn.
func (c *framedConn) framed() *framedConn { return c }

// securedConn is a framedConn with TLS.
type securedConn struct {
	*framedConn

	secure *tls.Conn
	log    *slog.Logger
}

// ConnectionState does the handshake. net/http calls it once before the first read and sets Request.TLS to the result. After
// a failed handshake, reads fail.
func (c *securedConn) ConnectionState() tls.ConnectionState {
	_ = c.secure.SetDeadline(time.Now().Add(readHeader))
	err := c.secure.HandshakeContext(context.Background()) // The deadline and Close end the handshake.
	if err == nil {
		_ = c.secure.SetDeadline(time.Time{})
		return c.secure.ConnectionState()
	}
	reason := err.Error()
	record, found := errors.AsType[tls.RecordHeaderError](err)
	if found && record.Conn != nil && http1.LooksLikeRequest(record.RecordHeader) {
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
		reason = "client sent an HTTP request to an HTTPS server"
	}
	_ = c.Close()
	c.log.Warn("TLS handshake failed", "remote", c.RemoteAddr().String(), "error", reason)
	return tls.ConnectionState{}
}

// framedOf returns a connection of a framedListener, or nil.
func framedOf(c net.Conn) *framedConn {
	if framer, ok := c.(interface{ framed() *framedConn }); ok {
		return framer.framed()
	}
	return nil
}

// oneFraming refuses requests that net/http repaired and another server may read otherwise. Later bytes on their
// connection are ambiguous too.
func oneFraming(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*framedConn); ok {
			if c.framing.Enter(); c.framing.Malformed() {
				w.Header().Set("Connection", "close")
				http.Error(w, "The request's framing is ambiguous: send no Transfer-Encoding beside Content-Length or in HTTP/1.0, "+
					"and no header line that begins with a blank.", http.StatusBadRequest)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
