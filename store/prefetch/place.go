package prefetch

import (
	"time"

	"github.com/headgate/headgate"
)

// stash is what is left of one grant.
type stash struct {
	left, units int64
	// until is when it is void, by our clock: a hold from before the grant was asked for.
	until time.Duration
	// at is when it was granted and ceiling when it is void, both by the source's clock.
	at, ceiling headgate.Instant
	// arrived is when the grant came, by our clock.
	arrived time.Duration
	// nonce is that of the next receipt: the grant's number above its seqBits.
	nonce uint64
	// asked is what of the place's demand was served from here: it is counted in the line that is written anyway.
	asked int64
}

// seqBits number the takes from one stash: what comes beyond has no receipts.
const seqBits = 20

// estimate gives a time of the source's clock that has passed at now, within
// what the stash is valid for.
func (st *stash) estimate(now time.Duration) headgate.Instant {
	return max(st.at, min(st.at.Add(now-st.arrived), st.ceiling-1))
}

// serve gives the nonce for the receipts of n ops, or 0 if there are none left.
func (st *stash) serve(n int) uint64 {
	nonce := st.nonce
	if nonce&(1<<seqBits-1)+uint64(n) >= 1<<seqBits {
		return 0
	}
	st.nonce += uint64(n)
	return nonce
}

// words is what the source said of one op.
type words struct {
	cost      int64
	remaining int64
	// resetAt and retryAt are by our clock, from when the answer came.
	resetAt, retryAt time.Duration
	verdict          headgate.Verdict
	reason           headgate.Reason
}

// said is what the source said last of a key's ops.
type said struct {
	at headgate.Instant
	// arrived is when it came, by our clock, and lag how long before that it was asked.
	arrived, lag time.Duration
	// until is when refusals are asked for again at the latest.
	until time.Duration
	ops   [maxOps]words
}

// place is what is known of one key under one shape. Its lines of 64 bytes are laid
// out so that who spends writes to one of them: that of the stash.
type place struct {
	// since is when the period of demand began, asked what was asked for in it and
	// not served from a stash, demand how many units a hold were before.
	since  time.Duration
	demand float64
	hold   time.Duration
	asked  int64

	// The next grant is asked for when no more than low units are left, or from renew
	// on, but not before quiet. flying says that it is.
	low          int64
	renew, quiet time.Duration
	flying       bool

	stashes [2]stash

	shape   shape
	refused uint64 // Requests refused here.
	said    said
	_       [24]byte
}

// left is how many units can be spent at now.
func (p *place) left(now time.Duration) int64 {
	n := int64(0)
	for i := range p.stashes {
		if st := &p.stashes[i]; now < st.until {
			n += st.left
		}
	}
	return n
}

// ready gives the stash that can bear cost at now and ends first, or nil.
func (p *place) ready(now time.Duration, cost int64) *stash {
	a, b := &p.stashes[0], &p.stashes[1]
	if b.until < a.until {
		a, b = b, a
	}
	if now < a.until && a.left >= cost {
		return a
	}
	if now < b.until && b.left >= cost {
		return b
	}
	return nil
}

// deposit lays a grant where no units are left, or the fewest.
func (s *Store) deposit(p *place, st stash, now time.Duration) {
	to := &p.stashes[0]
	if other := &p.stashes[1]; other.worth(now) < to.worth(now) {
		to = other
	}
	p.asked += to.asked
	s.closeStash(to)
	*to = st
}

func (st *stash) worth(now time.Duration) int64 {
	if now >= st.until {
		return 0
	}
	return st.left
}

// closeStash counts what was spent of a stash, and what was not.
func (s *Store) closeStash(st *stash) {
	s.counts.spent.Add(uint64(st.units - st.left))
	s.counts.expired.Add(uint64(st.left))
	*st = stash{}
}
