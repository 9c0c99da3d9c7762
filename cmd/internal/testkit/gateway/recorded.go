package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TraefikAsks is the subrequest that Traefik's forwardAuth sends for a request of 127.0.0.11 for /search/x?q=1, with
// forged fields of both kinds. Traefik overwrites X-Forwarded-* of clients, and the example removes X-Original-*. The module
// cmd/test/traefik compares it with the subrequest of a real Traefik.
const TraefikAsks = "GET /v1/decide?from=forwarded HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: curl/8\r\nAccept: */*\r\n" +
	"X-Forwarded-For: 127.0.0.11\r\nX-Forwarded-Host: a.example\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Port: 80\r\n" +
	"X-Forwarded-Proto: http\r\nX-Forwarded-Uri: /search/x?q=1\r\nAccept-Encoding: gzip\r\n\r\n"

// Once checks that the gateway asks headgate server once about a request, also without an answer: clients must not wait for
// further attempts.
func (g *Gateway) Once(t *testing.T) {
	t.Helper()
	var asked atomic.Int64
	ends := make(chan struct{})
	headgate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("User-Agent"), "curl") { // Not the requests of await.
			asked.Add(1)
			<-ends
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(headgate.Close)
	defer close(ends)
	at := g.start(t, headgate.Listener.Addr().String(), startService(t).at, http.StatusOK)
	a := newClient(at, "127.0.0.11").send(t, "GET", "/search/x", "", "User-Agent: curl/8")
	if got := asked.Load(); got != 1 || a.status != g.Silent {
		t.Errorf("headgate server is asked %d times, and the status is %d, want once and %d", got, a.status, g.Silent)
	}
}

// Subrequest sends the request of TraefikAsks to the gateway, and returns the subrequest that headgate server gets.
func (g *Gateway) Subrequest(t *testing.T) *http.Request {
	t.Helper()
	got := make(chan *http.Request, 1)
	headgate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("User-Agent"), "curl") { // Not the requests of await.
			got <- r
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(headgate.Close)
	at := g.start(t, headgate.Listener.Addr().String(), startService(t).at, http.StatusOK)
	newClient(at, "127.0.0.11").send(t, "GET", "/search/x?q=1", "", "Host: a.example", "User-Agent: curl/8", "Accept: */*",
		"X-Original-Uri: /free", "X-Forwarded-Uri: /free", "X-Forwarded-Method: OPTIONS", "X-Forwarded-For: 198.51.100.1",
		"Headgate-Token: forged", "headgate-token: forged")
	select {
	case r := <-got:
		return r
	case <-time.After(patience):
		t.Fatalf("%s sends no subrequest", g.Name)
		return nil
	}
}
