package guard

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// bucketsAt makes a guard without rules, whose store has the time of a variable.
func bucketsAt(t *testing.T, c Config, now *headgate.Instant) *Guard {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 4 << 20, Clock: func() headgate.Instant { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	c.Store = store
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// take decides one request to a sent bucket.
func take(t *testing.T, g *Guard, key string, l headgate.Limit, cost int64) (headgate.Decision, error) {
	t.Helper()
	var b SentBatch
	b.Begin(g)
	b.Add([]byte(key), l, cost)
	b.Decide(t.Context())
	d, err := b.Decision(0)
	if err != nil {
		return headgate.Decision{}, err
	}
	return *d, nil
}

func sentBucketOf(burst, count int64, per time.Duration) headgate.Limit {
	return headgate.Limit{Count: count, Per: per, Burst: burst}
}

// TestSentBuckets tells the story of a key whose client sends other limits.
func TestSentBuckets(t *testing.T) {
	now := headgate.Instant(1_700_000_000_000_000_000)
	g := bucketsAt(t, Config{}, &now)
	for i, step := range []struct {
		after     time.Duration
		limit     headgate.Limit
		cost      int64
		verdict   headgate.Verdict
		remaining int64
	}{
		{0, sentBucketOf(10, 1, time.Second), 4, headgate.Allow, 6},
		{0, sentBucketOf(10, 60, time.Minute), 0, headgate.Allow, 6},    // The same rate in another period.
		{0, sentBucketOf(10, 3600, time.Hour), 6, headgate.Allow, 0},    // It has the same units.
		{0, sentBucketOf(10, 1, time.Second), 1, headgate.Deny, 0},      // Limits in turns gain nothing.
		{0, sentBucketOf(10, 60, time.Minute), 1, headgate.Deny, 0},     //
		{0, sentBucketOf(10, 86400, 24*time.Hour), 1, headgate.Deny, 0}, //
		{2 * time.Second, sentBucketOf(10, 1, time.Second), 0, headgate.Allow, 2},
		{0, sentBucketOf(10, 1, time.Second), 11, headgate.Deny, 2}, // Above the burst: never.
		{time.Hour, sentBucketOf(10, 1, time.Second), 10, headgate.Allow, 0},
	} {
		now = now.Add(step.after)
		d, err := take(t, g, "key", step.limit, step.cost)
		if err != nil || d.Verdict != step.verdict || d.Remaining != step.remaining {
			t.Errorf("step %d, %v: got %v with %d left, %v, want %v with %d", i, step.limit, d.Verdict, d.Remaining, err, step.verdict, step.remaining)
		}
	}
	if d, err := take(t, g, "other", sentBucketOf(10, 1, time.Second), 10); err != nil || d.Verdict != headgate.Allow {
		t.Errorf("another key: %+v, %v", d, err)
	}
}

// TestSentBucketFaults: what cannot be decided has an error of its own, and the others of the batch are decided.
func TestSentBucketFaults(t *testing.T) {
	now := headgate.Instant(1_700_000_000_000_000_000)
	g := bucketsAt(t, Config{}, &now)
	var b SentBatch
	b.Begin(g)
	good := sentBucketOf(10, 1, time.Second)
	b.Add([]byte("a"), good, 1)
	b.Add([]byte("a"), good, -1)
	b.Add([]byte("a"), sentBucketOf(10, 1, 400*24*time.Hour), 1)
	b.Add([]byte("a"), sentBucketOf(10, 0, time.Second), 1)
	b.Add([]byte("a"), good, 1)
	b.Decide(t.Context())
	for i, want := range []string{"", headgate.ErrBadCost.Error(), "use 1µs to 367d", "", ""} {
		d, err := b.Decision(i)
		switch {
		case want == "" && i == 3: // A count of 0 admits nothing, or is invalid.
			if err == nil && d.Verdict == headgate.Allow {
				t.Errorf("a limit of 0 admits")
			}
		case (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("request %d: %v, %v, want %q", i, d, err, want)
		}
	}
	if d, err := b.Decision(4); err != nil || d.Remaining != 8 {
		t.Errorf("the last request: %+v, %v", d, err)
	}
	var none SentBatch
	none.Begin(new(Guard))
	none.Add([]byte("a"), good, 1)
	none.Decide(t.Context())
	if _, err := none.Decision(0); !errors.Is(err, headgate.ErrNotMade) {
		t.Errorf("a guard that New did not make: %v", err)
	}
	without, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(t, without, "a", good, 1); !errors.Is(err, ErrNoStore) {
		t.Errorf("a guard without a store: %v", err)
	}
}

// TestSentBucketsStay: the counts of a limit that left are there when it comes again, also after a reload.
func TestSentBucketsStay(t *testing.T) {
	now := headgate.Instant(1_700_000_000_000_000_000)
	c := Config{MaxSentLimits: 3}
	g := bucketsAt(t, c, &now)
	own := sentBucketOf(5, 1, time.Hour)
	if d, err := take(t, g, "key", own, 5); err != nil || d.Verdict != headgate.Allow {
		t.Fatal(d, err)
	}
	for i := range int64(50) {
		if _, err := take(t, g, "others", sentBucketOf(i+6, 1, time.Minute), 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.now().sent.table.used.Len(); n != 3 {
		t.Errorf("%d limits are kept, want 3", n)
	}
	if d, err := take(t, g, "key", own, 1); err != nil || d.Verdict != headgate.Deny {
		t.Errorf("after 50 other limits: %+v, %v", d, err)
	}
	c.Store = g.Store()
	if err := g.Reload(c); err != nil {
		t.Fatal(err)
	}
	if d, err := take(t, g, "key", own, 1); err != nil || d.Verdict != headgate.Deny {
		t.Errorf("after a reload: %+v, %v", d, err)
	}
}

// TestSharedBucketKeepsTheRate compares rates as fractions.
func TestSharedBucketKeepsTheRate(t *testing.T) {
	random, shared := rand.New(rand.NewPCG(1, 2)), 0
	for range 10_000 {
		l := headgate.Limit{
			Count: 1 + random.Int64N(1<<random.IntN(53)), Per: time.Duration(1+random.Int64N(1<<random.IntN(24))) * time.Second,
			Burst: random.Int64N(1 << random.IntN(50)),
		}
		got := SharedBucket(l)
		if got.Per == sharedPeriod {
			shared++
		} else if got != l {
			t.Fatalf("%v becomes %v", l, got)
		}
		rate := func(l headgate.Limit) *big.Rat { return big.NewRat(l.Count, int64(l.Per)) }
		if rate(got).Cmp(rate(l)) != 0 || got.Count > headgate.MaxUnits || max(got.Burst, l.Burst) != got.Burst {
			t.Fatalf("%v becomes %v", l, got)
		}
	}
	if shared < 1000 {
		t.Errorf("only %d of 10000 limits have the common period", shared)
	}
}

// observed is an Observer that keeps what it gets, as text.
type observed struct{ lines []string }

func (o *observed) Observe(req *headgate.Request, a *Answer) {
	r := a.Closest()
	o.lines = append(o.lines, fmt.Sprintf("%s %s %d of %d, %s: %v %v, fallback %v",
		r.Rule.Name, r.AppendKey(nil, rule.PlainKeyNames()), req.Cost, r.Limit.Count, r.Limit.Per, a.Verdict, r.Decision.Reason, r.Fallback))
}

// silenced is a store that fails while err is set.
type silenced struct {
	headgate.Store

	err error
}

func (s *silenced) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// TestSentBucketsAreObserved: an observer gets each decision, also without the store, under the client's own limit and key.
func TestSentBucketsAreObserved(t *testing.T) {
	now := headgate.Instant(1_700_000_000_000_000_000)
	var seen observed
	failing := &silenced{}
	store, err := memory.New(memory.Config{MaxMemory: 4 << 20, Clock: func() headgate.Instant { return now }})
	if err != nil {
		t.Fatal(err)
	}
	failing.Store = store
	g, err := New(Config{Store: failing, Namespace: "shop", Observer: &seen})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		var b SentBatch
		b.Begin(g)
		b.Add([]byte("a"), sentBucketOf(2, 1, time.Second), 2)
		b.Add([]byte("b\n"), sentBucketOf(5, 3, time.Minute), 0)
		b.Add([]byte("c"), sentBucketOf(1, 0, time.Second), -1) // It is invalid, so nothing is decided.
		b.Add([]byte("a"), sentBucketOf(2, 1, time.Second), 1)
		b.Decide(t.Context())
	}
	ask()
	failing.err = errors.New("down")
	ask()
	want := []string{
		`(sent) descriptor:key="a" 2 of 1, 1s: allow within_limit, fallback false`,
		`(sent) descriptor:key="b\n" 0 of 3, 1m0s: allow within_limit, fallback false`,
		`(sent) descriptor:key="a" 1 of 1, 1s: deny over_limit, fallback false`,
		`(sent) descriptor:key="a" 2 of 1, 1s: deny store_unavailable, fallback true`,
		`(sent) descriptor:key="b\n" 0 of 3, 1m0s: deny store_unavailable, fallback true`,
		`(sent) descriptor:key="a" 1 of 1, 1s: deny store_unavailable, fallback true`,
	}
	if !slices.Equal(seen.lines, want) {
		t.Errorf("observed:\n%s\nwant:\n%s", strings.Join(seen.lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestSentBatchAllocations: a batch allocates nothing, also with an observer.
func TestSentBatchAllocations(t *testing.T) {
	if race.On {
		return // The race detector makes sync.Pool drop entries.
	}
	now := headgate.Instant(1_700_000_000_000_000_000)
	g := bucketsAt(t, Config{Observer: ignoring{}}, &now)
	var b SentBatch
	keys := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	ctx := context.WithoutCancel(t.Context())
	if got := testing.AllocsPerRun(100, func() {
		b.Begin(g)
		for i, key := range keys {
			b.Add(key, sentBucketOf(int64(1_000_000+i), 1, time.Second), 1)
		}
		b.Decide(ctx)
	}); got != 0 {
		t.Errorf("a batch takes %v allocations", got)
	}
}

// ignoring is an Observer that does nothing.
type ignoring struct{}

func (ignoring) Observe(*headgate.Request, *Answer) {}

// storeErrors is an Observer that keeps the errors of the store.
type storeErrors struct{ all []error }

func (o *storeErrors) Observe(_ *headgate.Request, a *Answer) { o.all = append(o.all, a.StoreError) }

// TestSentBatchOfALeftCaller: a cancelled batch says nothing about the store, and one whose time is over does.
func TestSentBatchOfALeftCaller(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var seen storeErrors
	failing := &silenced{Store: store}
	g, err := New(Config{Store: failing, Observer: &seen})
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	late, end := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer end()
	for _, ctx := range []context.Context{left, late} {
		failing.err = ctx.Err()
		var b SentBatch
		b.Begin(g)
		b.Add([]byte("a"), sentBucketOf(2, 1, time.Second), 1)
		b.Decide(ctx)
	}
	if len(seen.all) != 2 || !errors.Is(seen.all[0], ErrCallerGone) || errors.Is(seen.all[1], ErrCallerGone) || seen.all[1] == nil {
		t.Errorf("observed: %v, want a caller that has left, and an error of the store", seen.all)
	}
}
