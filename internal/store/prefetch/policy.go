package prefetch

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// policy is a prepared policy: the caller's version and the source's version. A policy is
// immutable.
type policy struct {
	source    headgate.PolicyID
	algorithm headgate.Algorithm
	// room is the number of units that the caller's policy admits at once. most is that of the
	// source's policy.
	room, most int64
	hold       time.Duration
	batch      int64
	grid       grid
	// stashes: units may be prefetched, for requests of at most sane units.
	stashes bool
	sane    int64
	// counts: refused attempts must reach the source. bans: refused attempts must reach the
	// source unless the ban itself refuses them.
	counts, bans bool
}

// wholeParts: one request takes at most an eighth of the limit from a stash. One grant
// prefetches at most an eighth of the limit.
const wholeParts = 8

// Prepare implements headgate.Store. A policy with Hold above 0 is prepared at the source in
// a form that makes its stashes safe. The package comment gives that form.
func (s *Store) Prepare(given headgate.Policy) (headgate.PolicyID, error) {
	if !s.made() {
		return 0, headgate.ErrNotMade
	}
	return s.policies.Prepare(given)
}

// Release implements headgate.Store. When the last user releases a policy, the policy is
// freed here and released at the source. The source keeps the counts. Unspent units of
// stashes stay counted.
func (s *Store) Release(id headgate.PolicyID) {
	if s.made() {
		s.policies.Release(id)
	}
}

// compile prepares a policy at the source.
func (s *Store) compile(given headgate.Policy) (*policy, error) {
	at, err := rewrite(given)
	if err != nil {
		return nil, err
	}
	p := describe(given, at)
	p.source, err = s.source.Prepare(at)
	return p, err
}

// describe makes a policy from the caller's version and the source's version.
func describe(given, at headgate.Policy) *policy {
	p := &policy{
		algorithm: given.Algorithm,
		room:      limit.Room(given), most: limit.Room(at), hold: given.Hold, batch: given.Batch,
		counts: given.CountRejected, bans: given.Algorithm == headgate.Ban,
	}
	p.stashes = given.Hold > 0 && p.most > 0
	p.sane = max(p.most/wholeParts, 1)
	p.batch = min(p.batch, p.most)
	switch {
	case given.Limit.Calendar != headgate.NoCalendar: // Nothing is taken ahead, so no border matters.
	case limit.TraitsOf(given.Algorithm).Ahead == limit.AheadByWindow:
		p.grid = grid{uint64(given.Limit.Per), uint64(max(given.SubWindows, 1))}
	default: // The other algorithms have no borders.
	}
	return p
}

// rewrite gives the source's version of a policy.
func rewrite(p headgate.Policy) (headgate.Policy, error) {
	hold, batch := p.Hold, p.Batch
	p.Hold, p.Batch = 0, 0
	switch {
	case hold < 0 || batch < 0:
		return p, fault(fmt.Sprintf("has a hold of %s and a batch of %d", hold, batch), "use values of at least 0")
	case hold == 0 && batch > 0:
		return p, fault("has a batch and no hold", "add a hold, or leave the batch out")
	case hold == 0:
		return p, nil
	case limit.TraitsOf(p.Algorithm).Ahead == limit.AheadNever:
		return p, fault("is not supported for "+p.Algorithm.String(), "leave it out, or use another algorithm")
	case p.Limit.Calendar != headgate.NoCalendar:
		return p, fault("takes no units ahead of a "+p.Limit.Period()+" of the calendar", "leave it out, or use a period like 30d")
	case p.CountRejected:
		return p, fault("cannot count refused attempts", "leave out prefetch or count_rejected")
	case hold > p.Limit.Per:
		return p, fault(fmt.Sprintf("has a hold of %s, longer than the limit's period", hold), "use at most "+p.Limit.Period())
	case p.Limit.Count <= 0: // The policy admits nothing, or the source refuses it.
		return p, nil
	}
	switch limit.TraitsOf(p.Algorithm).Ahead {
	case limit.AheadByPeriod:
		p.Limit.Per += wholeMicroseconds(hold)
	case limit.AheadByBurst:
		return lowerBurst(p, hold)
	default: // A stash of a window expires with the window.
	}
	return p, nil
}

// lowerBurst subtracts rate x hold, rounded up, from the burst of a bucket.
func lowerBurst(p headgate.Policy, hold time.Duration) (headgate.Policy, error) {
	burst := limit.Room(p)
	less := ceilUnits(p.Limit, wholeMicroseconds(hold))
	if less < burst {
		p.Limit.Burst = burst - less
		return p, nil
	}
	// The largest hold, in whole microseconds, subtracts burst - 1 units.
	hi, lo := bits.Mul64(uint64(burst-1), uint64(p.Limit.Per))
	greatest := time.Duration(0)
	if hi < uint64(p.Limit.Count) {
		q, _ := bits.Div64(hi, lo, uint64(p.Limit.Count))
		greatest = time.Duration(q).Truncate(time.Microsecond)
	}
	fix := fmt.Sprintf("hold at most %s, raise the burst, or leave it out", greatest)
	if greatest <= 0 {
		fix = "raise the burst, or leave it out"
	}
	return p, fault(fmt.Sprintf("for %s takes %d units from a burst of %d", hold, less, burst), fix)
}

// ceilUnits gives the units of l that refill within d, rounded up. d is at most Per.
func ceilUnits(l headgate.Limit, d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(d), uint64(l.Count))
	if hi >= uint64(l.Per) {
		return headgate.MaxUnits
	}
	q, r := bits.Div64(hi, lo, uint64(l.Per))
	if r > 0 {
		q++
	}
	return int64(q)
}

// wholeMicroseconds rounds up: shared stores count in microseconds.
func wholeMicroseconds(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

func fault(problem, fix string) error {
	return &limit.PolicyError{Field: "prefetch", Problem: problem, Fix: fix}
}

// grid has the borders of the counters of a window: each k x per / parts after the Unix
// epoch. The zero grid has no borders.
type grid struct{ per, parts uint64 }

// after gives the first border after t, rounded up to a nanosecond, and whether there is one.
// per is at least a microsecond and parts at most 256, so every quotient fits into 64 bits.
func (g grid) after(t headgate.Instant) (headgate.Instant, bool) {
	if g.parts == 0 || t < 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(t), g.parts)
	k, _ := bits.Div64(hi, lo, g.per)
	hi, lo = bits.Mul64(k+1, g.per)
	border, rest := bits.Div64(hi, lo, g.parts)
	if rest > 0 {
		border++
	}
	return headgate.Instant(border), true
}
