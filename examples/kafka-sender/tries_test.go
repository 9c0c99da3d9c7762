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

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace/heed"
)

var errSick = errors.New("a fault of the provider")

// A record whose call fails is tried again, with a permit each time, while those behind
// it go on; nothing behind it is committed before it is done.
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
		until(t, "all but those that fail are sent", func() bool { return b.left() == events/100 })
		synctest.Wait()
		if committed := b.commits()[0]; committed > bad/2 {
			t.Errorf("partition 0 is committed up to %d, and %d has failed", committed, bad/2)
		}
		until(t, "all events are sent", b.allSent)
		counts := s.end(t)
		if counts.Sent != events || counts.Failed != 3*events/100 || counts.Dead != 0 {
			t.Errorf("%+v", counts)
		}
		if permits := c.Pacer.Stats().Acquired; int(permits) != b.calls || b.calls != events+3*events/100 {
			t.Errorf("%d calls with %d permits", b.calls, permits)
		}
		if committed := b.commits(); committed[0] != events/2 || committed[1] != events/2 {
			t.Errorf("committed %v", committed)
		}
	})
}

// A record that never succeeds goes to the dead letters with what is known of it, and those
// behind it are committed.
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
		until(t, "one is dead", func() bool { return s.Counts().Dead == 1 })
		if took, least := time.Since(began), (restFirst+2*restFirst+4*restFirst)/2; took < least {
			t.Errorf("given up after %v, want %v and more", took, least)
		}
		counts := s.end(t)
		if counts.Sent != events-1 || counts.Failed != 4 {
			t.Errorf("%+v", counts)
		}
		if committed := b.commits()[0]; committed != events/2 {
			t.Errorf("committed up to %d", committed)
		}
		reader, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.Dialer(b.dial), kgo.ConsumeTopics(letters))
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		found := reader.PollFetches(t.Context()).Records()
		if len(found) != 1 || string(found[0].Key) != "42" || string(found[0].Value) != `{"event":42}` {
			t.Fatalf("dead letters %v", found)
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

// A dead letter that cannot be written is no reason to forget the record.
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
		until(t, "it was tried once more than that", func() bool { return s.Counts().Failed == 2 })
		synctest.Wait()
		if counts := s.Counts(); counts.Dead != 0 || counts.Backlog != 7 {
			t.Errorf("%+v", counts)
		}
		until(t, "it is dead", func() bool { return s.Counts().Dead == 1 })
		s.end(t)
		if committed := b.commits()[0]; committed != 10 {
			t.Errorf("committed up to %d", committed)
		}
	})
}

// Without a topic for dead letters they are logged, and the rest goes on.
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
		until(t, "one is dead", func() bool { return s.Counts().Dead == 1 && b.left() == 1 })
		s.end(t)
		if committed := b.commits()[0]; committed != 10 || !strings.Contains(log.String(), "offset=3 tries=1") {
			t.Errorf("committed up to %d, and the log says %s", committed, log.String())
		}
	})
}

// When the provider asks to be left alone, all calls wait for as long, and no record
// is charged a try for it.
func TestRefusedBrakesAll(t *testing.T) {
	const events = 3000
	bubble(t, 2, events, func(b *bed) {
		t := b.t
		var mu sync.Mutex
		var times []time.Time
		began := time.Now()
		c := b.config(t, 1000)
		c.Tries, c.Calls = 1, 20
		provider := &Provider{URL: "http://provider/", Heard: heed.New(c.Pacer), Client: &http.Client{
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
			t.Errorf("all calls paused %d times, want 2", gaps)
		}
		if twice := b.twice(); len(twice) > 0 {
			t.Errorf("%d events were sent twice", len(twice))
		}
	})
}

// One partition that is stuck is paused; the others go on.
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
			t.Errorf("%+v: want one partition paused, with its part of the backlog", counts)
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

// A partition that is paused again and again is read on at once, though in another there
// is nothing new: the brokers are not waited for.
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

// As many calls are under way as may be, and no more, however many permits there are.
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
			t.Errorf("%d calls of 10 ms, %d at once, took %v", events, calls, took)
		}
		s.end(t)
		if most != calls {
			t.Errorf("%d calls at once, want %d", most, calls)
		}
	})
}

// Whatever fails in whatever order, each event is sent, and the permits are as many as the calls.
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
				t.Errorf("seed %d: %d were sent twice; %+v", seed, len(twice), counts)
			}
			if sum(b.commits()) != events || int(c.Pacer.Stats().Acquired) != b.calls {
				t.Errorf("seed %d: committed %v, %d calls with %d permits", seed, b.commits(), b.calls, c.Pacer.Stats().Acquired)
			}
			if most := b.mostInWindow(); most > 2000 {
				t.Errorf("seed %d: %d calls in a second", seed, most)
			}
		})
	}
}
