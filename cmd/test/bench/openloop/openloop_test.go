package openloop

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server with a handler, and opens four connections to it.
func serve(t *testing.T, handle http.HandlerFunc) *Load {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	l, err := Dial(t.Context(), Target{URL: s.URL, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestLateAnswers checks that requests behind a slow answer count with the time that they
// wait for the connection. The first connection is slow until the others have had 20 answers.
func TestLateAnswers(t *testing.T) {
	const requests, interval = 40, time.Millisecond
	var slow string
	var others atomic.Int64
	release := make(chan struct{})
	l := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.RemoteAddr == slow {
			<-release
		} else if others.Add(1) == 20 {
			close(release)
		}
	})
	first, ok := l.connections[0].(*http1Connection)
	if !ok {
		t.Fatalf("got a connection of %T, want one of HTTP/1.1", l.connections[0])
	}
	slow = first.LocalAddr().String()
	times, err := l.Send(t.Context(), requests, interval)
	if err != nil {
		t.Fatal(err)
	}
	const released = 26 * interval // Request 26 is the 20th of the other connections.
	for i := 0; i < 26; i += 4 {
		if least := released - time.Duration(i)*interval; times.Latency[i] < least {
			t.Errorf("request %d: got a latency of %v, want at least %v", i, times.Latency[i], least)
		}
	}
	for i, delay := range times.Delay {
		if delay < 0 || delay > times.Latency[i] {
			t.Errorf("request %d: got a delay of %v and a latency of %v, want 0 ≤ delay ≤ latency", i, delay, times.Latency[i])
		}
	}
}

func TestConnectionsStayOpen(t *testing.T) {
	l := serve(t, func(http.ResponseWriter, *http.Request) {})
	for range 2 {
		times, err := l.Send(t.Context(), 10, 100*time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Min(times.Latency) <= 0 {
			t.Errorf("got the latencies %v, want all above 0", times.Latency)
		}
	}
}

func TestRefusal(t *testing.T) {
	var served atomic.Int64
	l := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) == 5 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if _, err := l.Send(t.Context(), 100, 100*time.Microsecond); err == nil || !strings.Contains(err.Error(), "got status 503") {
		t.Errorf("got the error %v, want that of status 503", err)
	}
}

// TestTargets sends requests in each of the other forms, and checks what arrives.
func TestTargets(t *testing.T) {
	for _, test := range []struct {
		name   string
		target Target
		proto  int
		closes bool
	}{
		{"TLS", Target{Connections: 2}, 1, false},
		{"HTTP/2", Target{Connections: 2, HTTP2: true}, 2, false},
		{"new connections", Target{}, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var connections, requests atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != test.proto || r.Close != test.closes || r.Header.Get("X-Api-Key") != "key" {
					t.Errorf("got protocol %d, close %v and key %q", r.ProtoMajor, r.Close, r.Header.Get("X-Api-Key"))
				}
				requests.Add(1)
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = w.Write(make([]byte, 1<<10)) // The client checks that the answer ends.
			}))
			s.EnableHTTP2 = true
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			s.StartTLS()
			defer s.Close()
			test.target.URL, test.target.Key, test.target.Status = s.URL+"/a", "key", http.StatusTooManyRequests
			l, err := Dial(t.Context(), test.target)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			const sends, each = 2, 9
			for range sends {
				times, err := l.Send(t.Context(), each, 100*time.Microsecond)
				if err != nil || slices.Min(times.Latency) <= 0 {
					t.Fatalf("got the latencies %v and the error %v, want latencies above 0", times.Latency, err)
				}
			}
			want := int64(test.target.Connections)
			if test.closes {
				want = sends * each
			}
			if requests.Load() != sends*each || connections.Load() != want {
				t.Errorf("got %d requests on %d connections, want %d on %d", requests.Load(), connections.Load(), sends*each, want)
			}
		})
	}
}

// TestEach checks that calls begin in order, when they are due, although no call is answered before the last
// one has begun.
func TestEach(t *testing.T) {
	const calls, interval = 20, 500 * time.Microsecond
	var unanswered sync.WaitGroup
	release := make(chan struct{})
	var dues []time.Time
	err := Each(t.Context(), calls, interval, func(i int, due time.Time) error {
		if early := time.Until(due); early > 0 {
			t.Errorf("call %d began %v before its due time", i, early)
		}
		if i != len(dues) || i > 0 && due.Sub(dues[i-1]) != interval {
			t.Errorf("call %d after %d calls is due at %v, want one each %v: %v", i, len(dues), due, interval, dues)
		}
		dues = append(dues, due)
		unanswered.Go(func() { <-release })
		return nil
	})
	close(release)
	unanswered.Wait()
	if err != nil || len(dues) != calls {
		t.Errorf("got %d calls and the error %v, want %d calls", len(dues), err, calls)
	}
}

func TestEachEndsEarly(t *testing.T) {
	failed, stopped := errors.New("failed"), errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for _, c := range []struct {
		name  string
		want  error
		third func() error
		calls int
	}{
		{"the context ends in the third call", stopped, func() error { cancel(stopped); return nil }, 3},
		{"the context has ended", stopped, nil, 0},
	} {
		calls := 0
		err := Each(ctx, 10, time.Microsecond, func(i int, _ time.Time) error {
			calls++
			if i == 2 {
				return c.third()
			}
			return nil
		})
		if !errors.Is(err, c.want) || calls != c.calls {
			t.Errorf("%s: got %d calls and the error %v, want %d and %v", c.name, calls, err, c.calls, c.want)
		}
	}
	calls := 0
	if err := Each(t.Context(), 10, time.Microsecond, func(int, time.Time) error { calls++; return failed }); calls != 1 || !errors.Is(err, failed) {
		t.Errorf("the first call fails: got %d calls and the error %v, want 1 and %v", calls, err, failed)
	}
}
