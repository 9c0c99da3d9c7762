package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace/httppace"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/headgate/headgate"
)

var errSick = errors.New("a provider error")

// A failed record is retried with a new permit for each try. The records after it continue,
// but they are not committed before it is done.
func TestTriesAgain(t *testing.T) {
	const events, bad = 1000, 10
	bubble(t, 2, events, func(b *bed) {
		t := b.t
		tries := make(map[int]int)
		b.answer = func(id int) error {
			if id%100 != bad {
				return nil
			}
			if tries[id]++; tries[id] <= 3 {
				return errSick
			}
			return nil
		}
		c := b.config(t, 1000)
		s := start(t, c)
		until(t, "all records except the failing ones are sent", func() bool { return b.left() == events/100 })
		synctest.Wait()
		if committed := b.commits()[0]; committed > bad/2 {
			t.Errorf("partition 0 is committed up to %d, but event %d has failed", committed, bad/2)
		}
		until(t, "all events are sent", b.allSent)
		counts := s.end(t)
		if counts.Sent != events || counts.Failed != 3*events/100 || counts.Dead != 0 {
			t.Errorf("%+v", counts)
		}
		if permits := c.Pacer.Stats().Acquired; int(permits) != b.calls || b.calls != events+3*events/100 {
			t.Errorf("got %d calls with %d permits", b.calls, permits)
		}
		if committed := b.commits(); committed[0] != events/2 || committed[1] != events/2 {
			t.Errorf("committed %v", committed)
		}
	})
}

// A record that always fails goes to the dead letters with its error. The records after it
// are committed.
func TestDeadLetters(t *testing.T) {
	const events, bad = 100, 42
	bubble(t, 2, events, func(b *bed) {
		t := b.t
		b.answer = func(id int) error {
			if id == bad {
				return errors.New(strings.Repeat("x", 1000))
			}
			return nil
		}
		c := b.config(t, 1000)
		c.DeadLetter, c.Tries = letters, 4
		began := time.Now()
		s := start(t, c)
		until(t, "one record is dead", func() bool { return s.Counts().Dead == 1 })
		if took, least := time.Since(began), (backoffFirst+2*backoffFirst+4*backoffFirst)/2; took < least {
			t.Errorf("gave up after %v, want at least %v", took, least)
		}
		counts := s.end(t)
		if counts.Sent != events-1 || counts.Failed != 4 {
			t.Errorf("%+v", counts)
		}
		if committed := b.commits()[0]; committed != events/2 {
			t.Errorf("wrong committed offset: %d", committed)
		}
		reader, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.Dialer(b.dial), kgo.ConsumeTopics(letters))
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		found := reader.PollFetches(t.Context()).Records()
		if len(found) != 1 || string(found[0].Key) != "42" || string(found[0].Value) != `{"event":42}` {
			t.Fatalf("wrong dead letters: %v", found)
		}
		said := make(map[string]string)
		for _, h := range found[0].Headers {
			said[h.Key] = string(h.Value)
		}
		if said["dead-letter-from"] != topic+"/0/21" || said["dead-letter-tries"] != "4" || len(said["dead-letter-error"]) != 500 {
			t.Errorf("headers %v", said)
		}
	})
}

// A record is kept if its dead letter cannot be written.
func TestDeadLetterRefused(t *testing.T) {
	bubble(t, 1, 10, func(b *bed) {
		t := b.t
		b.answer = func(id int) error {
			if id == 3 {
				return errSick
			}
			return nil
		}
		b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: letters, Err: kerr.TopicAuthorizationFailed, Count: 1})
		c := b.config(t, 1000)
		c.DeadLetter, c.Tries = letters, 2
		s := start(t, c)
		until(t, "the record was retried after the refused dead letter", func() bool { return s.Counts().Failed == 2 })
		synctest.Wait()
		if counts := s.Counts(); counts.Dead != 0 || counts.Backlog != 7 {
			t.Errorf("%+v", counts)
		}
		until(t, "the record is dead", func() bool { return s.Counts().Dead == 1 })
		s.end(t)
		if committed := b.commits()[0]; committed != 10 {
			t.Errorf("wrong committed offset: %d", committed)
		}
	})
}

// Without a topic for dead letters, a failed record is logged, and the others continue.
func TestGivenUp(t *testing.T) {
	bubble(t, 1, 10, func(b *bed) {
		t := b.t
		b.answer = func(id int) error {
			if id == 3 {
				return errSick
			}
			return nil
		}
		c := b.config(t, 1000)
		var log strings.Builder
		c.Logger, c.Tries = logTo(&log), 1
		s := start(t, c)
		until(t, "one record is dead", func() bool { return s.Counts().Dead == 1 && b.left() == 1 })
		s.end(t)
		if committed := b.commits()[0]; committed != 10 || !strings.Contains(log.String(), "offset=3 tries=1") {
			t.Errorf("got committed offset %d and log %s", committed, log.String())
		}
	})
}

// A refusal with a retry time delays all calls until that time, and does not count as a try.
func TestRefusedBrakesAll(t *testing.T) {
	const events = 3000
	bubble(t, 2, events, func(b *bed) {
		t := b.t
		var mu sync.Mutex
		var times []time.Time
		began := time.Now()
		c := b.config(t, 1000)
		c.Tries, c.Calls = 1, 20
		provider := &Provider{URL: "http://provider/", Heard: httppace.NewListener(c.Pacer), Client: &http.Client{
			Transport: answers(func(r *http.Request) (int, string) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				times = append(times, now)
				if second := now.Sub(began) / time.Second; second == 0 || second == 5 {
					return http.StatusTooManyRequests, "3"
				}
				text, _ := io.ReadAll(r.Body)
				id, _ := eventOf(&kgo.Record{Value: text})
				_ = b.book(id, headgate.Instant(now.UnixNano()))
				return http.StatusOK, ""
			}),
		}}
		c.Call = provider.Call
		s := start(t, c)
		until(t, "all events are sent", b.allSent)
		counts := s.end(t)
		if counts.Dead != 0 || counts.Failed != 0 || counts.Sent != events || counts.Refused < 5 || counts.Refused > 2*c.Calls {
			t.Errorf("%+v", counts)
		}
		gaps := 0
		for i := range times[1:] {
			if gap := times[i+1].Sub(times[i]); gap > 2*time.Second {
				gaps++
			}
		}
		if gaps != 2 {
			t.Errorf("all calls paused: got %d times, want 2", gaps)
		}
		if twice := b.twice(); len(twice) > 0 {
			t.Errorf("%d events were sent twice", len(twice))
		}
	})
}

// A blocked partition is paused, and the other partitions continue.
func TestStuckPartition(t *testing.T) {
	const events = 6000
	bubble(t, 3, events, func(b *bed) {
		t := b.t
		stuck := true
		b.answer = func(id int) error {
			if id%3 == 1 && stuck {
				return errSick
			}
			return nil
		}
		c := b.config(t, 1000)
		c.Backlog, c.Tries = 900, 1_000_000
		s := start(t, c)
		until(t, "the other partitions are sent", func() bool { return b.left() == events/3 })
		counts := s.Counts()
		if counts.Paused != 1 || counts.Backlog > c.Backlog/3+readAtOnce {
			t.Errorf("got %+v, want one paused partition with its part of the backlog", counts)
		}
		b.mu.Lock()
		stuck = false
		b.mu.Unlock()
		until(t, "all events are sent", func() bool { return s.Counts().Sent == events })
		if counts := s.end(t); counts.Resumes != counts.Pauses {
			t.Errorf("%+v", counts)
		}
	})
}

// A partition that is paused often is read at once after each pause, even if another
// partition has no new records.
func TestIdlePartition(t *testing.T) {
	const events, limit = 5000, 1000
	bubble(t, 2, 0, func(b *bed) {
		t := b.t
		b.ledger = newLedger(events)
		b.produce(0, events, func(int) int32 { return 0 })
		c := b.config(t, limit)
		c.Backlog = 1000
		began := time.Now()
		s := start(t, c)
		until(t, "all events are sent", b.allSent)
		if took := time.Since(began); took > events/limit*time.Second {
			t.Errorf("%d events at %d/s took %v", events, limit, took)
		}
		if counts := s.end(t); counts.Pauses < 5 {
			t.Errorf("%+v", counts)
		}
	})
}

// The number of concurrent calls reaches its maximum and never exceeds it, with any number
// of permits.
func TestCallsAreBounded(t *testing.T) {
	const events, calls = 2000, 10
	bubble(t, 2, events, func(b *bed) {
		t := b.t
		c := b.config(t, 1_000_000)
		var now atomic.Int32
		var mu sync.Mutex
		most := int32(0)
		c.Calls = calls
		c.Call = func(ctx context.Context, r *kgo.Record, at headgate.Instant) error {
			n := now.Add(1)
			defer now.Add(-1)
			mu.Lock()
			most = max(most, n)
			mu.Unlock()
			<-time.After(10 * time.Millisecond)
			return b.call(ctx, r, at)
		}
		began := time.Now()
		s := start(t, c)
		until(t, "all events are sent", b.allSent)
		if took := time.Since(began); took < events/calls*10*time.Millisecond || took > events/calls*11*time.Millisecond {
			t.Errorf("%d calls of 10 ms, %d concurrent, took %v", events, calls, took)
		}
		s.end(t)
		if most != calls {
			t.Errorf("got %d concurrent calls, want %d", most, calls)
		}
	})
}

// With failures in any order, each event is sent, and the permits equal the calls.
func TestNothingIsLost(t *testing.T) {
	const events = 3000
	for seed := range uint64(5) {
		bubble(t, 4, events, func(b *bed) {
			t := b.t
			chance := rand.New(rand.NewPCG(seed, 1))
			b.answer = func(int) error {
				switch n := chance.IntN(1000); {
				case n < 200:
					return errSick
				case n < 201:
					return &RefusedError{Status: 503, After: time.Duration(chance.IntN(1000)) * time.Millisecond}
				}
				return nil
			}
			c := b.config(t, 2000)
			c.Tries, c.Calls, c.Backlog = 1_000_000, 30, 500
			s := start(t, c)
			until(t, "all events are sent", b.allSent)
			counts := s.end(t)
			if twice := b.twice(); len(twice) > 0 || counts.Sent != events {
				t.Errorf("seed %d: %d events were sent twice: %+v", seed, len(twice), counts)
			}
			if sum(b.commits()) != events || int(c.Pacer.Stats().Acquired) != b.calls {
				t.Errorf("seed %d: got commits %v, and %d calls with %d permits", seed, b.commits(), b.calls, c.Pacer.Stats().Acquired)
			}
			if most := b.mostInWindow(); most > 2000 {
				t.Errorf("seed %d: got %d calls in one second", seed, most)
			}
		})
	}
}
