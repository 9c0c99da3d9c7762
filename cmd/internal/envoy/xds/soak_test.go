//go:build soak

package xds

import (
	"testing"
	"time"
)

// TestSoakServerReturns ends a real server for 10 s and for 2 min.
func TestSoakServerReturns(t *testing.T) {
	for _, away := range []time.Duration{10 * time.Second, 2 * time.Minute} {
		t.Run(away.String(), func(t *testing.T) { returns(t, away, 2*time.Second) })
	}
}

// TestSoakRefusal counts the messages to a real server with a refused configuration in 30 s.
func TestSoakRefusal(t *testing.T) {
	l := loopback(t, "127.0.0.1:0")
	c := start(t, l)
	c.publish(t, "v1", domain("first", "bad"))
	s, err := New(Config{Server: l.Addr().String(), NodeID: node})
	if err != nil {
		t.Fatal(err)
	}
	i := follow(t, s, refuseBad)
	<-time.After(30 * time.Second)
	if requests, _ := c.received(); len(requests) < 5 || len(requests) > 10 {
		t.Errorf("the server got %d messages in 30 s, want 5 to 10", len(requests))
	}
	began := time.Now()
	c.publish(t, "v2", domain("first", "good"))
	i.awaitValue(t, "good")
	if elapsed := time.Since(began); elapsed > lastRefusal+time.Second {
		t.Errorf("the corrected configuration took %v, want at most %v", elapsed, lastRefusal+time.Second)
	}
}
