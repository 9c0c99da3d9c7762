package certs

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/internal/testkit/fifo"
)

// TestPipeInPlace checks a pipe in place of a certificate. It blocks no handshake and no
// Reload, and is reported once as an error. A certificate that replaces the pipe is served.
func TestPipeInPlace(t *testing.T) {
	a, dir, now := newAuthority(t), folder(t.TempDir()), newClock()
	first, second := a.issue(t, "first"), a.issue(t, "second")
	cert, key := dir.put(t, first)
	var mu sync.Mutex
	var reported []error
	s, err := NewServer(ServerConfig{Cert: cert, Key: key, Clock: now.time, Reloaded: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, err)
	}})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, s)
	expect := func(when, want string) {
		t.Helper()
		now.advance(checkEvery)
		if got, _, _, err := visit(t, at, &tls.Config{RootCAs: a.pool()}); got != want || err != nil {
			t.Errorf("%s: served %q (%v), want %q", when, got, err, want)
		}
	}
	for _, path := range []string{cert, key} {
		if err := errors.Join(os.Remove(path), fifo.Make(path)); err != nil {
			t.Fatal(err)
		}
		expect("with a pipe", "first")
		expect("still with a pipe", "first")
		if err := s.Reload(); !errors.Is(err, readfile.ErrNotRegular) {
			t.Errorf("Reload returned %v, want %v", err, readfile.ErrNotRegular)
		}
	}
	if err := errors.Join(os.Remove(cert), os.Remove(key)); err != nil {
		t.Fatal(err)
	}
	dir.put(t, second)
	expect("with files again", "second")
	mu.Lock()
	defer mu.Unlock()
	if n := len(reported); n < 2 || reported[n-1] != nil || !errors.Is(reported[0], readfile.ErrNotRegular) {
		t.Errorf("Reloaded got %v, want failures and a success", reported)
	}
}
