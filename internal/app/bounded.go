package app

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// bounded limits the duration and the body size of each request. body is in bytes. A longest of 0 is for
// handlers that end by themselves: a timer for each request costs more than a decision.
func bounded(next http.Handler, body int64, longest time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// The deadline also bounds the rest of the body, which net/http reads after the handler.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(adminReadBody))
			r.Body = http.MaxBytesReader(w, r.Body, body)
		}
		if longest == 0 {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), longest)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// tellIdle tells the listener which connections have no request in flight. The listener
// closes idle connections first.
func tellIdle(c net.Conn, state http.ConnState) {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	listened, ok := c.(interface {
		Idle()
		Busy()
	})
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		listened.Busy()
	case http.StateIdle:
		listened.Idle()
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}
