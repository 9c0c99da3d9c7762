package app

import (
	"context"
	"net"
	"net/http"
	"time"
)

// bounded limits the duration and the body size of each request.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// The deadline also bounds the rest of the body, which net/http reads after the handler.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(adminReadBody))
			r.Body = http.MaxBytesReader(w, r.Body, adminBody)
		}
		ctx, cancel := context.WithTimeout(r.Context(), adminLongest)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// tellIdle tells the listener which connections have no request in flight. The listener
// closes idle connections first.
func tellIdle(c net.Conn, state http.ConnState) {
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
