package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// A second instance joins while the first is busy, and then the first leaves. Partitions
// move twice. No record is lost or sent twice, because the sender waits for calls in
// flight and commits before it releases a partition.
func TestRebalance(t *testing.T) {
	const events, calls = 4000, 100
	b := newBed(t, 6, events)
	sender := func() (*running, tap) {
		c := b.config(t, 1)
		pacer, limit := newTap(t, 400)
		c.Pacer, c.Calls, c.Backlog = pacer, calls, 1000
		c.Call = func(ctx context.Context, r *kgo.Record, at headgate.Instant) error {
			<-time.After(100 * time.Millisecond) // The delay keeps calls in flight all the time.
			return b.call(ctx, r, at)
		}
		return start(t, c), limit
	}
	first, _ := sender()
	until(t, "the first instance has sent records", func() bool { return b.left() < events-200 })
	second, limit := sender()
	until(t, "both instances have partitions", func() bool {
		return first.Counts().Partitions == 3 && second.Counts().Partitions == 3
	})
	given := first.Counts()
	until(t, "both instances have sent records", func() bool { return second.Counts().Sent > 200 })
	ended := first.end(t)
	limit.limits <- 1_000_000
	until(t, "all events are sent", b.allSent)
	last := second.end(t)
	if given.Dropped == 0 || ended.Dropped <= given.Dropped {
		t.Errorf("dropped %d records at the first rebalance and %d in total, want more than 0 each", given.Dropped, ended.Dropped)
	}
	for i, s := range []*running{first, second} {
		counts, permits := s.Counts(), int(s.c.Pacer.Stats().Acquired)
		if permits != counts.Sent+counts.Unused || counts.Unused > calls {
			t.Errorf("sender %d used %d permits: %+v", i, permits, counts)
		}
	}
	if ended.Abandoned+last.Abandoned != 0 {
		t.Errorf("the instances abandoned %d and %d calls of 100 ms, want 0", ended.Abandoned, last.Abandoned)
	}
	if twice := b.twice(); len(twice) > 0 || ended.Sent+last.Sent != events {
		t.Errorf("%d events were sent twice; the instances sent %d and %d of %d", len(twice), ended.Sent, last.Sent, events)
	}
}

// wire is a network that the test can cut.
type wire struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

var errCut = errors.New("the network is cut")

func (w *wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		c.Close()
		return nil, errCut
	}
	w.open = append(w.open, c)
	return c, nil
}

func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, c := range w.open {
		c.Close()
	}
}

// An instance crashes. After its session has expired, another instance continues from the
// last commit. No record is lost, and only records that were not committed are sent twice.
func TestCrash(t *testing.T) {
	const events, limit = 4000, 400
	b := newBed(t, 4, events)
	w := &wire{dial: b.dial}
	c := b.config(t, limit)
	c.Pacer, _ = newTap(t, limit)
	var dead atomic.Bool
	c.Drain = 100 * time.Millisecond
	c.Options = append(c.Options, kgo.Dialer(w.Dial))
	c.Call = func(ctx context.Context, r *kgo.Record, at headgate.Instant) error {
		if dead.Load() {
			return errCut
		}
		return b.call(ctx, r, at)
	}
	crashed := start(t, c)
	until(t, "records are sent, and some are not committed", func() bool {
		sent, committed := events-b.left(), sum(b.commits())
		return sent > limit && committed > 0 && sent-committed > limit/10
	})
	dead.Store(true)
	w.Cut()
	<-time.After(100 * time.Millisecond) // Wait for calls that had just started.
	sent, committed := events-b.left(), b.commits()
	total := sum(committed)
	second := start(t, b.config(t, 1_000_000))
	until(t, "all records that were not committed are sent", func() bool { return second.Counts().Sent == events-total })
	second.end(t)
	crashed.stop()
	<-crashed.ended
	if left := b.left(); left != 0 {
		t.Errorf("%d events are lost", left)
	}
	twice := b.twice()
	if len(twice) == 0 || len(twice) != sent-total {
		t.Errorf("%d events were sent twice, after %d sent events and %d committed events", len(twice), sent, total)
	}
	for _, id := range twice {
		if int64(id/4) < committed[int32(id%4)] {
			t.Errorf("event %d was committed but sent again", id)
		}
	}
}

func sum(committed map[int32]int64) (total int) {
	for _, n := range committed {
		total += int(n)
	}
	return total
}

// A call that takes longer than Drain is abandoned. The next owner of the partition sends
// its record again, and also the records done after it. Records that waited for a permit
// have used none.
func TestHandoverDoesNotWaitForEver(t *testing.T) {
	const events = 300
	bubble(t, 2, events, func(b *bed) {
		t := b.t
		c := b.config(t, 200)
		c.Drain, c.CallTimeout = 2*time.Second, time.Hour
		var hangs atomic.Bool
		c.Call = func(ctx context.Context, r *kgo.Record, at headgate.Instant) error {
			if id, _ := eventOf(r); id == 7 {
				hangs.Store(true)
				<-ctx.Done()
				return ctx.Err()
			}
			return b.call(ctx, r, at)
		}
		first := start(t, c)
		until(t, "the permits of one second are used", func() bool { return hangs.Load() && b.left() <= events-199 })
		sent := events - b.left()
		began := time.Now()
		counts := first.end(t)
		if took := time.Since(began); took < c.Drain || took > c.Drain+time.Second {
			t.Errorf("ended after %v, want %v", took, c.Drain)
		}
		if counts.Abandoned != 1 || counts.Sent != sent || counts.Dropped != events-sent-1 {
			t.Errorf("got %+v, want 1 abandoned, %d sent and the others dropped", counts, sent)
		}
		stats := c.Pacer.Stats()
		if stats.Acquired != uint64(sent)+1 || stats.GivenUp == 0 || stats.Waiters != 0 {
			t.Errorf("got %d permits for %d calls, %d canceled tickets and %d waiting tickets",
				stats.Acquired, sent+1, stats.GivenUp, stats.Waiters)
		}
		if committed := b.commits(); committed[1] != 3 { // Event 7 is the fourth event of partition 1.
			t.Errorf("partition 1 is committed up to %d, want 3: records after the abandoned call are not committed", committed[1])
		}
		second := start(t, b.config(t, 100))
		until(t, "all events are sent", b.allSent)
		second.end(t)
		for _, id := range b.twice() {
			if id%2 == 0 || id < 7 {
				t.Errorf("event %d was sent twice", id)
			}
		}
	})
}

// A partition that was paused when it moved away is read when it returns.
func TestPauseEndsWithThePartition(t *testing.T) {
	const events = 1500
	b := newBed(t, 2, events)
	sender := func() (*running, tap) {
		c := b.config(t, 1)
		pacer, limit := newTap(t, 0)
		c.Pacer, c.Backlog = pacer, 200
		return start(t, c), limit
	}
	first, limit := sender()
	until(t, "both partitions are paused", func() bool { return first.Counts().Paused == 2 })
	second, _ := sender()
	until(t, "they share", func() bool { return first.Counts().Partitions == 1 && second.Counts().Partitions == 1 })
	until(t, "both partitions are paused again", func() bool { return first.Counts().Paused == 1 && second.Counts().Paused == 1 })
	second.end(t)
	limit.limits <- 1_000_000
	until(t, "all events are sent", b.allSent)
	first.end(t)
	if twice := b.twice(); len(twice) > 0 {
		t.Errorf("%d events were sent twice", len(twice))
	}
}

// A call may end after its partition has moved. The sender then neither commits nor gives
// up its record.
func TestLateCall(t *testing.T) {
	const events = 200
	b := newBed(t, 2, events)
	release := make(chan struct{})
	quick := kgo.AutoCommitInterval(100 * time.Millisecond)
	c := b.config(t, 1000)
	c.Options = append(c.Options, quick)
	c.Drain, c.Tries = 50*time.Millisecond, 1
	c.Call = func(_ context.Context, r *kgo.Record, _ headgate.Instant) error {
		if r.Offset < 2 {
			<-release
		}
		if r.Offset == 1 {
			return errSick
		}
		return nil
	}
	first := start(t, c)
	until(t, "all calls except the blocked ones are done", func() bool { return first.Counts().Sent == events-4 })
	c = b.config(t, 1000)
	c.Options = append(c.Options, quick)
	second := start(t, c)
	var theirs int32
	until(t, "the second instance has sent its partition", func() bool {
		for theirs = range int32(2) {
			if b.commits()[theirs] == events/2 {
				return true
			}
		}
		return false
	})
	close(release)
	until(t, "the first instance commits its records", func() bool { return b.commits()[1-theirs] == events/2 })
	<-time.After(400 * time.Millisecond) // Wait for several commits.
	if committed := b.commits()[theirs]; committed != events/2 {
		t.Errorf("the partition of the second instance is committed up to %d, want %d", committed, events/2)
	}
	counts := first.end(t)
	if counts.Abandoned != 2 || counts.Dead != 1 {
		t.Errorf("got %+v, want 2 abandoned calls and 1 dead record of the partition that stayed", counts)
	}
	second.end(t)
}

// A ticket that arrives just after its partition has moved is returned.
func TestTicketTooLate(t *testing.T) {
	pacer := newPacer(t, 0)
	s := &Sender{c: Config{Calls: 3}, wake: make(chan struct{}, 1)}
	e := &event{of: &partition{state: leaving}, state: waiting}
	s.keep(e, pacer.AcquireFunc(1, pace.Forever, func(headgate.Instant, error) {}))
	if stats := pacer.Stats(); stats.Waiters != 0 || stats.GivenUp != 1 || s.free != 1 {
		t.Errorf("got %d waiting tickets, %d canceled tickets and %d free calls", stats.Waiters, stats.GivenUp, s.free)
	}
}

// deaf is a connection that can stop to deliver answers.
type deaf struct {
	net.Conn

	now *atomic.Bool
}

func (d deaf) Write(b []byte) (int, error) {
	if d.now.Load() {
		return len(b), nil
	}
	return d.Conn.Write(b)
}

// The program ends even if brokers do not answer.
func TestEndsWithoutBrokers(t *testing.T) {
	bubble(t, 4, 4000, func(b *bed) {
		t := b.t
		var now atomic.Bool
		c := b.config(t, 1000)
		c.Options = append(c.Options, kgo.AutoCommitInterval(time.Hour), // The function bubble explains this option.
			kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := b.dial(ctx, network, address)
				return deaf{conn, &now}, err
			}))
		s := start(t, c)
		until(t, "some records are sent", func() bool { return b.left() < 3000 })
		now.Store(true)
		began := time.Now()
		s.end(t)
		if took := time.Since(began); took > 2*answerWithin+time.Second {
			t.Errorf("Run took %v to end", took)
		}
		<-time.After(5 * time.Minute) // The client continues to retry for a while.
	})
}

// Run returns an error when the pacer ends, because it cannot send. The other records stay
// in Kafka.
func TestRunEndsWithThePacer(t *testing.T) {
	bubble(t, 1, 100, func(b *bed) {
		t := b.t
		c := b.config(t, 10)
		s := start(t, c)
		until(t, "some records are sent", func() bool { return b.left() < 80 })
		c.Pacer.Close()
		if err := <-s.ended; !errors.Is(err, pace.ErrClosed) {
			t.Errorf("Run ended with %v", err)
		}
		if sent, committed := 100-b.left(), b.commits()[0]; int64(sent) != committed {
			t.Errorf("got %d sent and %d committed records", sent, committed)
		}
	})
}
