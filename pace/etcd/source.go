package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// Source is a [pace.Source] over etcd, and a [pace.Braker]. A Source is safe for concurrent use.
type Source struct {
	config    Config
	following atomic.Bool
	braking   braking
}

// New makes a source. New does not call etcd: Follow does.
func New(c Config) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	adoptLines(c.Client, c.Logger)
	return &Source{config: c, braking: braking{wanted: make(chan struct{}, 1)}}, nil
}

var errFollowed = errors.New("pace/etcd: Follow runs already: an instance has one part: make one Source for each pacer")

// Follow makes this process an instance of its provider, and reports its part of the limit until
// ctx is done. Follow then gives up the membership, which takes at most a second.
func (s *Source) Follow(ctx context.Context, to pace.Receiver) error {
	if s.config.Client == nil {
		return fmt.Errorf("pace/etcd: %w", headgate.ErrNotMade)
	}
	if !s.following.CompareAndSwap(false, true) {
		return errFollowed
	}
	defer s.following.Store(false)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	f := newFollower(s, to)
	f.work.Go(func() { f.member.run(inner, func(err error) { f.faults.tell("member", err) }) })
	f.work.Go(func() { s.tell(inner, f.keys, func(err error) { f.faults.tell("brake", err) }) })
	f.run(inner)
	cancel()
	f.work.Wait()
	return nil
}

// follower is one run of Follow. Everything except the goroutines that it starts belongs to one
// goroutine.
type follower struct {
	*Source

	to     pace.Receiver
	keys   keys
	work   sync.WaitGroup
	member *membership
	faults faults

	view      view
	standing  assignedPart
	proposing proposing
	offsets   offsets
	history   history
	era       int     // the number of histories so far
	disputed  *tenure // the tenure that has turned out to be over

	readings chan *reading
	heard    chan heard
	proposed chan error

	stopWatch context.CancelFunc // nil without a watch
	watches   int                // the number of watches so far
	newest    int64              // the newest revision of the watch
	behind    int64              // the revision that the watch must reach by the next full read

	nextRead, nextFull time.Time
	answeredAt         time.Time // the time of the last answered read
	returned           time.Time // the time of the first answered read after an outage, or after the start
	rejoining          time.Time // until then, members of the last plan may join after etcd has lost its data
	nextOffset         time.Time
	inFlight           bool // a proposal is in flight
	braked             *BrakeInfo
}

func newFollower(s *Source, to pace.Receiver) *follower {
	k := keysOf(s.config.Prefix, s.config.Provider)
	f := &follower{
		Source: s, to: to, keys: k, member: newMembership(s, to, k), faults: faults{to: to},
		view:     view{keys: k},
		standing: assignedPart{to: to, id: s.config.ID, onLoss: s.config.OnLoss, holdFor: s.config.HoldFor},
		readings: make(chan *reading, 1), heard: make(chan heard, 1), proposed: make(chan error, 1),
	}
	return f
}

// moment gives the time.
func (f *follower) moment() moment {
	shortest, longest := f.view.bounds(f.config.Propagation)
	return moment{time.Now(), f.config.Wall(), settled(longest), valid(shortest)}
}

// run reports until ctx is done.
func (f *follower) run(ctx context.Context) {
	f.standing.begin(f.moment())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-f.readings:
			f.take(ctx, r)
		case h := <-f.heard:
			f.handle(h)
		case err := <-f.proposed:
			f.answered(err)
		case <-f.member.changed:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		timer.Reset(f.step(ctx))
	}
}

// step does the work that is due, and gives the time until the next work.
func (f *follower) step(ctx context.Context) time.Duration {
	f.look()
	now := f.moment()
	wait := f.verify(ctx, now)
	if opens := f.standing.speak(now); opens > 0 {
		wait = min(wait, opens)
	}
	if !now.mono.Before(f.nextOffset) {
		f.nextOffset = now.mono.Add(time.Second)
		if ahead, instances := f.offsets.median(); instances > 0 {
			f.to.ClockOffset(ahead)
		}
	}
	wait = min(wait, f.propose(ctx, now), f.nextOffset.Sub(now.mono))
	return max(wait, time.Millisecond)
}

// look applies the state of this instance's membership.
func (f *follower) look() {
	switch t := f.member.shown.Load(); {
	case t.displaced || t == f.disputed:
		f.standing.displaced(f.moment())
	case t.registered:
		f.standing.join(f.moment())
	default:
		f.standing.unregister()
	}
}

// fullEvery is the number of reads per full read of all members. A working watch makes more
// unnecessary.
const fullEvery = 8

// verify reads the keys, to know that the plan is still the newest. It reads often enough that one
// read may fail. Slow reads overlap.
func (f *follower) verify(ctx context.Context, now moment) time.Duration {
	if wait := f.nextRead.Sub(now.mono); wait > 0 {
		return wait
	}
	shortest, _ := f.view.bounds(f.config.Propagation)
	every := verifyEvery(shortest)
	f.nextRead = now.mono.Add(every)
	q := request{era: f.era, known: f.history, plan: f.standing.known}
	if q.full = f.stopWatch == nil || !now.mono.Before(f.nextFull); q.full {
		f.nextFull = now.mono.Add(fullEvery*every + time.Duration(len(f.view.members.all))*time.Second/watched)
	}
	within := 8 * every // A late answer cannot confirm the plan, but still has new data.
	f.work.Go(func() {
		reading, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		r := f.read(reading, f.keys, q)
		select {
		case f.readings <- r:
		case <-ctx.Done():
		}
	})
	return every
}
