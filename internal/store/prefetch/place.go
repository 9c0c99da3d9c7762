package prefetch

import (
	"time"

	"github.com/headgate/headgate"
)

// stash is the unspent part of one grant.
type stash struct {
	left, units int64
	// until is when the stash expires, by this process's clock: a hold after the call began.
	until time.Duration
	// at is when the stash was granted, and ceiling when it expires, both by the source's clock.
	at, ceiling headgate.Instant
	// arrived is when the grant arrived, by this process's clock.
	arrived time.Duration
	// nonce is the nonce of the next receipt. The bits above seqBits number the grant.
	nonce uint64
	// asked counts the demand that this stash served. It is here because spending writes this
	// cache line anyway.
	asked int64
}

// seqBits number the takes from one stash. Further takes have no receipts.
const seqBits = 20

// estimate gives a time that the source's clock has passed at now, within the validity of the
// stash.
func (st *stash) estimate(now time.Duration) headgate.Instant {
	return max(st.at, min(st.at.Add(now-st.arrived), st.ceiling-1))
}

// serve gives the nonce for the receipts of n ops, or 0 when the numbers are used up.
func (st *stash) serve(n int) uint64 {
	nonce := st.nonce
	if nonce&(1<<seqBits-1)+uint64(n) >= 1<<seqBits {
		return 0
	}
	st.nonce += uint64(n)
	return nonce
}

// words is the last decision of the source on one op.
type words struct {
	cost      int64
	remaining int64
	// resetAt and retryAt are by this process's clock, from the arrival of the answer.
	resetAt, retryAt time.Duration
	verdict          headgate.Verdict
	reason           headgate.Reason
}

// said is the last answer of the source on the ops of a key.
type said struct {
	at headgate.Instant
	// arrived is when the answer arrived, by this process's clock. lag is the duration of the
	// call.
	arrived, lag time.Duration
	// until is when the source is called again at the latest, in spite of a known refusal.
	until time.Duration
	ops   [maxOps]words
}

// place is the state of one key under one shape. Its cache lines of 64 bytes are laid out so
// that a take writes to one of them: that of the stash.
type place struct {
	// since is when the current period of demand began. asked counts the demand of the period
	// that no stash served. demand is the earlier demand, in units a hold.
	since  time.Duration
	demand float64
	hold   time.Duration
	asked  int64

	// The next grant is requested when at most low units are left, or from renew on, but not
	// before quiet. flying: the request is in progress.
	low          int64
	renew, quiet time.Duration
	flying       bool

	stashes [2]stash

	shape   shape
	refused uint64 // refused counts requests refused without the source.
	said    said
	_       [24]byte
}

// left gives the units that can be spent at now.
func (p *place) left(now time.Duration) int64 {
	n := int64(0)
	for i := range p.stashes {
		if st := &p.stashes[i]; now < st.until {
			n += st.left
		}
	}
	return n
}

// ready gives the stash that can serve cost at now and expires first, or nil.
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

// deposit replaces the empty stash, or else the smaller one, with a grant.
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

// closeStash counts the spent and the unspent units of a stash.
func (s *Store) closeStash(st *stash) {
	s.counts.spent.Add(uint64(st.units - st.left))
	s.counts.expired.Add(uint64(st.left))
	*st = stash{}
}
