package main

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/pace/httppace"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

type permitKey struct{}

// stamped adds the time of its permit to each request, so that the provider can record it.
type stamped struct{ http.RoundTripper }

func (s stamped) RoundTrip(r *http.Request) (*http.Response, error) {
	at, _ := r.Context().Value(permitKey{}).(headgate.Instant)
	r = r.Clone(r.Context())
	r.Header.Set("Permit", strconv.FormatInt(int64(at), 10))
	return s.RoundTripper.RoundTrip(r)
}

// serveHTTP is the provider, which records the requests.
func (b *bed) serveHTTP(w http.ResponseWriter, r *http.Request) {
	var buffer [64]byte
	n, err := io.ReadFull(r.Body, buffer[:])
	at, bad := strconv.ParseInt(cmp.Or(r.Header.Get("Permit"), "0"), 10, 64)
	id, none := eventOf(&kgo.Record{Value: buffer[:n]})
	if err != io.ErrUnexpectedEOF || bad != nil || none != nil {
		http.Error(w, "invalid event", http.StatusBadRequest)
		return
	}
	if b.book(id, headgate.Instant(at)) != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// In each full second the calls reach exactly the limit. Pausing, reading and committing
// waste no permit.
func TestExactlyTheLimit(t *testing.T) {
	events, limit := 100_000, 25_000
	if race.On {
		events, limit = 20_000, 5000
	}
	bubble(t, 8, events, func(b *bed) {
		t := b.t
		c := b.config(t, int64(limit))
		began := time.Now() // A bubble starts at the start of a window.
		s := start(t, c)
		until(t, "all events are sent", b.allSent)
		if took, last := time.Since(began), time.Duration(events/limit-1)*time.Second; took < last || took > last+time.Second/4 {
			t.Errorf("%d events at %d/s took %v, want slightly more than %v", events, limit, took, last)
		}
		s.end(t)
		if full := b.fullWindows(limit); full != events/limit || len(b.twice()) > 0 {
			t.Errorf("%d of %d seconds had exactly %d calls; %d events were sent twice", full, events/limit, limit, len(b.twice()))
		}
	})
}

// This test uses real HTTP and the real clock. In no second do the permits exceed the
// limit, and each event arrives once. The backlog stays within its limit, because
// partitions are paused and resumed.
func TestNeverAboveTheLimit(t *testing.T) {
	events, limit := 100_000, 20_000
	if race.On {
		events, limit = 3000, 600
	}
	b := newBed(t, 8, events)
	server := httptest.NewServer(http.HandlerFunc(b.serveHTTP))
	defer server.Close()
	c := b.config(t, int64(limit))
	provider := &Provider{URL: server.URL, Client: NewClient(64), Heard: httppace.NewListener(c.Pacer)}
	provider.Client.Transport = stamped{provider.Client.Transport}
	c.Call = func(ctx context.Context, r *kgo.Record, at headgate.Instant) error {
		return provider.Call(context.WithValue(ctx, permitKey{}, at), r, at)
	}
	c.Calls, c.Backlog = 64, events/25
	began := time.Now()
	s := start(t, c)
	ahead := 0
	until(t, "all events are sent", func() bool {
		now := s.Counts()
		ahead = max(ahead, now.Backlog)
		return now.Sent == events
	})
	took := time.Since(began)
	counts := s.end(t)
	t.Logf("%d events at %d/s in %v, and %d seconds with exactly the limit: %+v", events, limit, took, b.fullWindows(limit), counts)

	if most := b.mostInWindow(); most > limit {
		t.Errorf("got %d calls in one second, want at most %d", most, limit)
	}
	if least := time.Duration(events/limit-1) * time.Second; took < least {
		t.Errorf("the calls took %v, want at least %v", took, least)
	}
	if counts.Sent != events || b.calls != events || len(b.twice()) > 0 {
		t.Errorf("got %d calls for %d events, and %d events were sent twice", b.calls, events, len(b.twice()))
	}
	if permits := c.Pacer.Stats().Acquired; permits != uint64(events) {
		t.Errorf("got %d permits for %d calls", permits, events)
	}
	if committed := sum(b.commits()); committed != events {
		t.Errorf("got %d committed records of %d", committed, events)
	}
	if counts.Pauses < 3 || counts.Resumes != counts.Pauses || ahead > 2*c.Backlog {
		t.Errorf("got %d pauses, %d resumes and a backlog of up to %d records", counts.Pauses, counts.Resumes, ahead)
	}
}
