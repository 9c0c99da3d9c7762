package prefetch

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// policy is a prepared policy: how the caller knows it, and how the source does.
// It is immutable.
type policy struct {
	source headgate.PolicyID
	// room is what the caller's policy admits at once, and most what the source's does.
	room, most int64
	hold       time.Duration
	batch      int64
	grid       grid
	// stashes says that units may be taken ahead, at most sane units a request.
	stashes bool
	sane    int64
	// counts says that refused attempts must reach the source; bans, that they must
	// unless the ban itself refuses them.
	counts, bans bool
}

// wholeParts: one request may be served from a stash, and demand may take ahead, up
// to this part of what a limit admits at once.
const wholeParts = 8

// Prepare implements headgate.Store. A policy with Hold above 0 is prepared at the
// source with what makes its stashes safe: see the package comment.
func (s *Store) Prepare(given headgate.Policy) (headgate.PolicyID, error) {
	if !s.made() {
		return 0, headgate.ErrNotMade
	}
	return s.policies.Prepare(given)
}

// Release implements headgate.Store. With the last user of a policy the policy is freed
// here and released at the source, which keeps what was used. The units that are left of
// its stashes stay counted.
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

// describe keeps what decisions need of a policy and of its rewriting.
func describe(given, at headgate.Policy) *policy {
	p := &policy{
		room: limit.Room(given), most: limit.Room(at), hold: given.Hold, batch: given.Batch,
		counts: given.CountRejected, bans: given.Algorithm == headgate.Ban,
	}
	p.stashes = given.Hold > 0 && p.most > 0
	p.sane = max(p.most/wholeParts, 1)
	p.batch = min(p.batch, p.most)
	switch given.Algorithm {
	case headgate.FixedWindow:
		p.grid = grid{uint64(given.Limit.Per), 1}
	case headgate.SlidingWindow:
		p.grid = grid{uint64(given.Limit.Per), uint64(given.SubWindows)}
	default: // The others have no borders.
	}
	return p
}

// rewrite gives the policy that the source counts by.
func rewrite(p headgate.Policy) (headgate.Policy, error) {
	hold, batch := p.Hold, p.Batch
	p.Hold, p.Batch = 0, 0
	switch {
	case hold < 0 || batch < 0:
		return p, fault(fmt.Sprintf("has a hold of %s and a batch of %d", hold, batch), "use neither below 0")
	case hold == 0 && batch > 0:
		return p, fault("has a batch, and no hold", "say how long units may be held, or leave it out")
	case hold == 0:
		return p, nil
	case p.Algorithm == headgate.LeakyBucket || p.Algorithm >= headgate.Ban:
		return p, fault("is not done for "+p.Algorithm.String(), "leave it out, or use another algorithm")
	case p.CountRejected:
		return p, fault("cannot count refused attempts", "leave out one of prefetch and count_rejected")
	case hold > p.Limit.Per:
		return p, fault(fmt.Sprintf("holds units for %s, longer than the limit's period", hold), "use at most "+p.Limit.Period())
	case p.Limit.Count <= 0: // It admits nothing, or is refused by the source.
		return p, nil
	}
	switch p.Algorithm {
	case headgate.SlidingLog:
		p.Limit.Per += wholeMicroseconds(hold)
	case headgate.TokenBucket:
		return lowerBurst(p, hold)
	default: // A stash of a window ends with it.
	}
	return p, nil
}

// lowerBurst takes rate x hold, rounded up, from the burst of a bucket.
func lowerBurst(p headgate.Policy, hold time.Duration) (headgate.Policy, error) {
	burst := limit.Room(p)
	less := ceilUnits(p.Limit, wholeMicroseconds(hold))
	if less < burst {
		p.Limit.Burst = burst - less
		return p, nil
	}
	// The greatest hold takes burst - 1 units from it, in whole microseconds.
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

// ceilUnits gives how many units of l come within d, rounded up, d being at most Per.
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

// grid is where the counters of a window change: at each k x per / parts after the
// Unix epoch. The zero grid has no borders.
type grid struct{ per, parts uint64 }

// after gives the first border after t, rounded up to a nanosecond, and whether
// there is one. per is at least a microsecond and parts at most 256, so that no
// quotient exceeds 64 bits.
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
