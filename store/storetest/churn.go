package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Churn is a run of clients that name one limit after another, in virtual time. A store
// keeps up with it in flat memory.
type Churn struct {
	// Limits is how many different limits are named, one every Every, each over Per.
	Limits     int
	Every, Per time.Duration
	// Kept is how many of them are in use at a time; those named first are released.
	Kept int
	// Uses: one of so many limits takes a unit.
	Uses int
}

// churned is how many limits are prepared and used at once: those of one script call.
const churned = 128

// flat is how much the heap may grow in the second half of a run, in bytes.
const flat = 4 << 20

// Run plays the churn on a store.
func (c Churn) Run(t *testing.T, newStore NewStore) {
	t.Helper()
	clock := NewClock()
	b := &bench{t: t, store: newStore(t, clock), clock: clock}
	var kept []headgate.PolicyID
	var half uint64
	for n := 0; n < c.Limits; n += churned {
		if half == 0 && n >= c.Limits/2 {
			half = heapNow()
		}
		ids := make([]headgate.PolicyID, churned)
		for i := range ids {
			ids[i] = b.prepare(c.policy(n + i))
			clock.Advance(c.Every)
		}
		b.use(ids, n, max(c.Uses, 1), 5000)
		kept = append(kept, ids...)
		for ; len(kept) > c.Kept; kept = kept[1:] {
			b.store.Release(kept[0])
		}
	}
	if end := heapNow(); end > half+flat {
		t.Errorf("%d bytes at half of %d limits, and %d at the end", half, c.Limits, end)
	}
	runtime.KeepAlive(b.store)
}

func (c Churn) policy(n int) headgate.Policy {
	return headgate.Policy{Limit: headgate.Limit{Count: int64(n + 1), Per: c.Per}, Named: true}
}

// use takes a unit under one of so many limits from the n-th on, under one of so many keys.
func (b *bench) use(ids []headgate.PolicyID, n, uses, keys int) {
	b.t.Helper()
	var ops []headgate.Op
	var counts []int64
	for i, id := range ids {
		if (n+i)%uses == 0 {
			ops = append(ops, headgate.Op{Key: fmt.Sprint("k", (n+i)%keys), Policy: id, Cost: 1, Group: uint8(len(ops) % 2)})
			counts = append(counts, int64(n+i+1))
		}
	}
	if len(ops) == 0 {
		return
	}
	for i, d := range b.apply(ops...) {
		if d.Limit != counts[i] {
			b.t.Fatalf("the limit of %d decides under a limit of %d", counts[i], d.Limit)
		}
	}
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Fill names limits of a year until the store refuses more, lets a configuration of 4,096
// other limits in, and sees that the store has capacity again when all have expired.
func Fill(t *testing.T, newStore NewStore) {
	t.Helper()
	const reserve, year = 4096, 365 * 24 * time.Hour
	clock := NewClock()
	b := &bench{t: t, store: newStore(t, clock), clock: clock}
	ofYear := func(n int) headgate.Policy {
		return headgate.Policy{
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: int64(n + 1), Per: year}, Named: true,
		}
	}
	named := 1<<16 - 1 - reserve
	for n := 0; n < named; {
		ids := make([]headgate.PolicyID, min(churned, named-n))
		for i := range ids {
			ids[i] = b.prepare(ofYear(n + i))
		}
		b.use(ids, n, 1, named)
		for _, id := range ids {
			b.store.Release(id)
		}
		n += len(ids)
		clock.Advance(time.Second)
	}
	if _, err := b.store.Prepare(ofYear(named)); !errors.Is(err, headgate.ErrTooManyPolicies) {
		t.Errorf("a limit of a client above the reserve: %v, want %v", err, headgate.ErrTooManyPolicies)
	}
	for n := range reserve {
		p := ofYear(named + n)
		p.Named = false
		b.prepare(p)
	}
	configured := ofYear(2*named - 1)
	configured.Named = false
	if _, err := b.store.Prepare(configured); !errors.Is(err, headgate.ErrTooManyPolicies) {
		t.Errorf("a limit of a configuration above all: %v, want %v", err, headgate.ErrTooManyPolicies)
	}
	clock.Advance(2*year + 24*time.Hour) // A fixed window is held for a window when the clock steps back.
	for n := range named {
		b.store.Release(b.prepare(ofYear(2*named + n)))
	}
}
