package storetest

import (
	"context"
	"flag"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Start is the time at which a Clock begins: a Monday noon in whole microseconds.
const Start = headgate.Instant(1_704_110_400_000_000_000)

// Clock is the time of a store under test. A Clock is safe for concurrent use.
type Clock struct{ now atomic.Int64 }

// NewClock makes a Clock at Start.
func NewClock() *Clock {
	c := &Clock{}
	c.now.Store(int64(Start))
	return c
}

// Now reads the clock.
func (c *Clock) Now() headgate.Instant { return headgate.Instant(c.now.Load()) }

// Advance moves the clock by d, which may be negative.
func (c *Clock) Advance(d time.Duration) { c.now.Add(int64(d)) }

// NewStore makes an empty store that reads the clock. NewStore cleans up with t.Cleanup.
type NewStore func(t *testing.T, clock *Clock) headgate.Store

// Option declares a limitation of a store.
type Option func(*suite)

// Without declares algorithms that a store does not offer; Ban is one of them. The suite then
// tests that Prepare refuses them.
func Without(algorithms ...headgate.Algorithm) Option {
	return func(s *suite) {
		for _, a := range algorithms {
			s.without[a] = true
		}
	}
}

// Lacks declares that a store cannot pass one story for some algorithms. The story has the
// name that Run gives it. The output lists each gap. An unknown story is a failure, and also
// a story that does not use the algorithm. The store's own tests must show what it does
// instead.
func Lacks(story string, algorithms ...headgate.Algorithm) Option {
	return func(s *suite) {
		for _, a := range algorithms {
			s.lacks[lack{story, a}] = false
		}
	}
}

// lack is a story that a store cannot pass for an algorithm.
type lack struct {
	story     string
	algorithm headgate.Algorithm
}

// suite is one run: the store under test and its declared gaps.
type suite struct {
	newStore NewStore
	without  map[headgate.Algorithm]bool
	// lacks has the declared gaps. The value is true once the suite has met the gap.
	lacks map[lack]bool
	apart bool // apart is set by Apart.
	// rounds is the number of requests for each named pair of versions; see Rounds.
	rounds int
	// root is the name of the test that runs the suite.
	root string
}

// Run tests the store against the whole contract.
func Run(t *testing.T, newStore NewStore, options ...Option) {
	t.Helper()
	s := &suite{newStore: newStore, without: map[headgate.Algorithm]bool{}, lacks: map[lack]bool{}, rounds: defaultRounds()}
	for _, o := range options {
		o(s)
	}
	s.root = t.Name()
	t.Run("Prepare", s.testPrepare)
	t.Run("Release", s.testRelease)
	t.Run("Faults", s.testFaults)
	t.Run("Traces", s.testTraces)
	t.Run("Expiry", s.testExpiry)
	t.Run("ClockBack", s.testClockBack)
	t.Run("LimitChanged", s.testLimitChanged)
	t.Run("TwoVersions", s.testTwoVersions)
	t.Run("ClockStories", s.testClockStories)
	t.Run("CostEdges", s.testCostEdges)
	t.Run("Groups", s.testGroups)
	t.Run("Never", s.testNever)
	t.Run("TakeIfAll", s.testTakeIfAll)
	t.Run("TakeIfAllBack", s.testTakeIfAllBack)
	t.Run("TakeIfAllTogether", s.testTakeIfAllTogether)
	t.Run("CountAll", s.testCountAll)
	t.Run("CountAllVersions", s.testCountAllVersions)
	t.Run("Calendar", s.testCalendar)
	t.Run("CalendarChanges", s.testCalendarChanges)
	t.Run("CalendarStates", s.testCalendarStates)
	t.Run("Refund", s.testRefund)
	t.Run("RefundClockBack", s.testRefundClockBack)
	t.Run("RefundHolders", s.testRefundHolders)
	t.Run("Receipts", s.testReceipts)
	t.Run("Kept", s.testKept)
	t.Run("Returns", s.testReturns)
	t.Run("Debts", s.testDebts)
	t.Run("Keys", s.testKeys)
	t.Run("Concurrency", s.testConcurrency)
	t.Run("Forget", s.testForget)
	t.Run("ReturnLast", s.testReturnLast)
	t.Run("Slots", s.testSlots)
	if !s.without[headgate.Ban] {
		t.Run("Ban", s.testBan)
	}
	for l, met := range s.lacks {
		if !met && s.filtered() == "" {
			t.Errorf("Lacks(%q, %s): no such story, or it does not use the algorithm", l.story, l.algorithm)
		}
	}
}

// filtered gives the value of -run. A run of some tests does not meet every declared gap.
func (s *suite) filtered() string {
	if f := flag.Lookup("test.run"); f != nil && strings.Contains(f.Value.String(), "/") {
		return f.Value.String()
	}
	return ""
}

// story gives the name of the story that t belongs to.
func (s *suite) story(t *testing.T) string {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), s.root+"/"), "/")
	return name
}

// missing reports whether a story is a declared gap for an algorithm.
func (s *suite) missing(story string, a headgate.Algorithm) bool {
	l := lack{story, a}
	_, declared := s.lacks[l]
	if declared {
		s.lacks[l] = true
	}
	return declared
}

// bench is a store with its clock, and the steps of the tests.
type bench struct {
	t     *testing.T
	store headgate.Store
	clock *Clock
}

func (s *suite) bench(t *testing.T) *bench {
	t.Helper()
	clock := NewClock()
	return &bench{t: t, store: s.newStore(t, clock), clock: clock}
}

func (b *bench) prepare(p headgate.Policy) headgate.PolicyID {
	b.t.Helper()
	id, err := b.store.Prepare(p)
	if err != nil {
		b.t.Fatalf("Prepare(%+v): %v", p, err)
	}
	return id
}

func (b *bench) apply(ops ...headgate.Op) []headgate.Decision {
	b.t.Helper()
	decisions := make([]headgate.Decision, len(ops))
	if err := b.store.Apply(context.Background(), ops, decisions); err != nil {
		b.t.Fatalf("Apply(%+v): %v", ops, err)
	}
	return decisions
}

// take decides one Op.
func (b *bench) take(key string, id headgate.PolicyID, cost int64) headgate.Decision {
	b.t.Helper()
	return b.apply(headgate.Op{Key: key, Policy: id, Cost: cost})[0]
}

func (b *bench) giveBack(receipts ...headgate.Receipt) {
	b.t.Helper()
	if err := b.store.Return(context.Background(), receipts); err != nil {
		b.t.Fatalf("Return: %v", err)
	}
}

// remaining gives the remaining units of a key, by Peek.
func (b *bench) remaining(key string, id headgate.PolicyID) int64 {
	b.t.Helper()
	return b.apply(headgate.Op{Key: key, Policy: id, Kind: headgate.Peek})[0].Remaining
}

// wantRemaining checks the remaining units of a key.
func (b *bench) wantRemaining(what, key string, id headgate.PolicyID, want int64) {
	b.t.Helper()
	if got := b.remaining(key, id); got != want {
		b.t.Errorf("%s: %d remain, want %d", what, got, want)
	}
}

// wantReason checks the reason of a decision.
func (b *bench) wantReason(what string, d headgate.Decision, want headgate.Reason) {
	b.t.Helper()
	if d.Reason != want {
		b.t.Errorf("%s: %v (%v), want %v", what, d.Reason, d.Verdict, want)
	}
}

// offered gives a policy of every algorithm of the store.
func (s *suite) offered(l headgate.Limit) []headgate.Policy {
	var all []headgate.Policy
	for _, a := range headgate.Algorithms() {
		if !s.without[a] {
			all = append(all, policy(a, l))
		}
	}
	return all
}

func policy(a headgate.Algorithm, l headgate.Limit) headgate.Policy {
	p := headgate.Policy{Algorithm: a, Limit: l}
	if a == headgate.SlidingWindow {
		p.SubWindows = 4
	} else if a == headgate.Ban {
		p.BanFor = 2 * l.Per
	}
	return p
}

// each runs a test for every algorithm of the store.
func (s *suite) each(t *testing.T, l headgate.Limit, test func(b *bench, p headgate.Policy, id headgate.PolicyID)) {
	t.Helper()
	for _, p := range s.offered(l) {
		if story := s.story(t); s.missing(story, p.Algorithm) {
			t.Run(p.Algorithm.String()+", declared missing", func(t *testing.T) { t.Logf("%s under %s is left out", story, p.Algorithm) })
			continue
		}
		t.Run(p.Algorithm.String(), func(t *testing.T) {
			b := s.bench(t)
			test(b, p, b.prepare(p))
		})
	}
}
