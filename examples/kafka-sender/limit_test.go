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

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/pace/heed"
)

type permitKey struct{}

// stamped writes on each request when its permit was given, for the provider's account.
type stamped struct{ http.RoundTripper }

func (s stamped) RoundTrip(r *http.Request) (*http.Response, error) {
	at, _ := r.Context().Value(permitKey{}).(headgate.Instant)
	r = r.Clone(r.Context())
	r.Header.Set("Permit", strconv.FormatInt(int64(at), 10))
	return s.RoundTripper.RoundTrip(r)
}

// serveHTTP is the provider: it keeps account of what arrives.
func (b *bed) serveHTTP(w http.ResponseWriter, r *http.Request) {
	var buffer [64]byte
	n, err := io.ReadFull(r.Body, buffer[:])
	at, bad := strconv.ParseInt(cmp.Or(r.Header.Get("Permit"), "0"), 10, 64)
	id, none := eventOf(&kgo.Record{Value: buffer[:n]})
	if err != io.ErrUnexpectedEOF || bad != nil || none != nil {
		http.Error(w, "what is this?", http.StatusBadRequest)
		return
	}
	if b.book(id, headgate.Instant(at)) != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// In each second that is whole just as many calls are made as the limit allows, be there
// ever so many records: none is wasted by pausing, reading or committing.
func TestExactlyTheLimit(t *testing.T) {
	events, limit := 100_000, 25_000
	if race.On {
		events, limit = 20_000, 5000
	}
	bubble(t, 8, events, func(b *bed) {
		t := b.t
		c := b.config(t, int64(limit))
		began := time.Now() // The edge of a window: a bubble begins with a new century.
		s := start(t, c)
		until(t, "all events are sent", b.allSent)
		if took, last := time.Since(began), time.Duration(events/limit-1)*time.Second; took < last || took > last+time.Second/4 {
			t.Errorf("%d events at %d/s took %v, want %v and a little", events, limit, took, last)
		}
		s.end(t)
		if full := b.fullWindows(limit); full != events/limit || len(b.twice()) > 0 {
			t.Errorf("%d seconds of %d had just %d calls; %d events were sent twice", full, events/limit, limit, len(b.twice()))
		}
	})
}

// Over real HTTP and by the real clock: in no second are more permits used at the provider
// than the limit is, each event arrives once, and what is read ahead stays within its
// bound, since partitions are paused and resumed.
func TestNeverAboveTheLimit(t *testing.T) {
	events, limit := 100_000, 20_000
	if race.On {
		events, limit = 3000, 600
	}
	b := newBed(t, 8, events)
	server := httptest.NewServer(http.HandlerFunc(b.serveHTTP))
	defer server.Close()
	c := b.config(t, int64(limit))
	provider := &Provider{URL: server.URL, Client: NewClient(64), Heard: heed.New(c.Pacer)}
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
	t.Logf("%d events at %d/s in %v, in %d seconds just the limit: %+v", events, limit, took, b.fullWindows(limit), counts)

	if most := b.mostInWindow(); most > limit {
		t.Errorf("%d calls in a second: the limit is %d", most, limit)
	}
	if least := time.Duration(events/limit-1) * time.Second; took < least {
		t.Errorf("it took %v, want %v and more", took, least)
	}
	if counts.Sent != events || b.calls != events || len(b.twice()) > 0 {
		t.Errorf("%d calls for %d events, %d of which were sent twice", b.calls, events, len(b.twice()))
	}
	if permits := c.Pacer.Stats().Acquired; permits != uint64(events) {
		t.Errorf("%d permits were spent on %d calls", permits, events)
	}
	if committed := sum(b.commits()); committed != events {
		t.Errorf("%d are committed of %d", committed, events)
	}
	if counts.Pauses < 3 || counts.Resumes != counts.Pauses || ahead > 2*c.Backlog {
		t.Errorf("%d pauses, %d resumes, and up to %d records were read ahead", counts.Pauses, counts.Resumes, ahead)
	}
}
