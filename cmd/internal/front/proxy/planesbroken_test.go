package proxy

import (
	"net"
	"net/http"
)

// tampering breaks a plane. The zero tampering changes nothing.
type tampering struct {
	request  func(*http.Request)                     // changes a request to the upstream
	response func(*http.Response)                    // changes a response of the upstream
	conn     func(net.Conn) net.Conn                 // changes the bytes from and to a client
	handler  func(*plane, http.Handler) http.Handler // stands before the proxy
}

// transport returns the transport of a plane.
func (tamper tampering) transport(up *Upstream) http.RoundTripper {
	if tamper.request == nil && tamper.response == nil {
		return up
	}
	return tamperedTransport{up, tamper}
}

type tamperedTransport struct {
	*Upstream

	tamper tampering
}

// RoundTrip implements http.RoundTripper.
func (t tamperedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.tamper.request != nil {
		t.tamper.request(r)
	}
	resp, err := t.Upstream.RoundTrip(r)
	if err == nil && t.tamper.response != nil {
		t.tamper.response(resp)
	}
	return resp, err
}

// listener returns the listener of a plane. It also wraps the server's handler.
func (tamper tampering) listener(p *plane, ln net.Listener) net.Listener {
	if tamper.handler != nil {
		p.server.http.Handler = tamper.handler(p, p.server.http.Handler)
	}
	if tamper.conn == nil {
		return ln
	}
	return tamperedListener{ln, tamper.conn}
}

type tamperedListener struct {
	net.Listener

	change func(net.Conn) net.Conn
}

// Accept implements net.Listener.
func (l tamperedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.change(c), nil
}
