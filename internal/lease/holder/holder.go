package holder

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// never is later than every other time.
const never = headgate.Instant(1<<63 - 1)

// Holder is one holder with claims on several resources. It is not safe for concurrent use.
type Holder struct {
	config    Config
	rand      *rand.Rand
	seq       uint64 // of the last report
	connected bool
	claims    []*claim // in the order of Claim
	by        map[string]*claim
	releases  []string
}

// Report is a message to the server.
type Report struct {
	Holder string
	Seq    uint64
	Claims []state.Claim
	Acks   []state.Ack
}

// New returns a holder without claims.
func New(c Config) *Holder {
	return &Holder{config: c, rand: c.Rand, by: make(map[string]*claim)}
}

// Claim adds a claim on a resource. It wants nothing until Want.
func (h *Holder) Claim(now headgate.Instant, resource string) error {
	switch {
	case resource == "" || len(resource) > state.MaxName:
		return errName
	case h.by[resource] != nil:
		return ErrClaimed
	case len(h.claims) >= state.MaxClaims:
		return errFull
	}
	c := &claim{resource: resource, made: now, next: now, refresh: defaultRefresh, retry: leastRetry}
	h.claims = append(h.claims, c)
	h.by[resource] = c
	return nil
}

// Release ends a claim. The next report tells the server.
func (h *Holder) Release(resource string) {
	c := h.by[resource]
	if c == nil {
		return
	}
	delete(h.by, resource)
	h.claims = slices.DeleteFunc(h.claims, func(other *claim) bool { return other == c })
	if c.seq != 0 && len(h.releases) < maxReleases {
		h.releases = append(h.releases, resource)
	}
}

// Want sets what the holder wants of a resource, in thousandths of a unit a second, or slots.
func (h *Holder) Want(resource string, wants int64) {
	if c := h.by[resource]; c != nil {
		c.wants = within(wants)
	}
}

// Spent counts units of calls, and those that the resource itself refused, in thousandths.
func (h *Holder) Spent(resource string, units, refused int64) {
	if c := h.by[resource]; c != nil {
		c.spent = within(c.spent + within(units))
		c.failed = min(within(c.failed+within(refused)), c.spent)
	}
}

// Connected says that a stream to a server is open: all claims are due.
func (h *Holder) Connected(now headgate.Instant) {
	h.connected = true
	for _, c := range h.claims {
		c.seq, c.answered, c.next, c.retry = 0, false, now, leastRetry
	}
}

// Disconnected says that the stream has ended. Leases stay valid until their ends. Releases that
// were not sent are forgotten: these leases end by time.
func (h *Holder) Disconnected() {
	h.connected, h.releases = false, nil
	for _, c := range h.claims {
		c.seq = 0
	}
}

// Next returns the time at which Advance or Report has work.
func (h *Holder) Next(now headgate.Instant) headgate.Instant {
	at := never
	for _, c := range h.claims {
		if left := c.held.Left(now); left > 0 {
			at = min(at, now.Add(left))
		}
		if left := c.grace.Left(now); c.kept && left > 0 {
			at = min(at, now.Add(left))
		}
		if start := c.made.Add(optimistic); h.config.OnLoss == Optimistic && !c.leased && start > now {
			at = min(at, start)
		}
		if limited := c.shortAt.Add(limitedAfter); c.short && limited > now {
			at = min(at, limited)
		}
		if h.connected {
			at = min(at, c.due())
			if c.ack {
				at = now
			}
		}
	}
	if h.connected && len(h.releases) > 0 {
		at = now
	}
	return at
}

// Advance ends leases whose time has passed.
func (h *Holder) Advance(now headgate.Instant) {
	for _, c := range h.claims {
		if c.leased && !c.lost && c.held.Left(now) <= 0 {
			c.held, c.lost, c.ack = state.Held{}, true, false
			c.kept, c.grace = false, state.Grace{}
			c.shorten(now, h.config.OnLoss)
		}
		if c.kept && c.grace.Left(now) <= 0 {
			c.kept = false
			c.shorten(now, h.config.OnLoss)
		}
	}
}

// Report fills r with what is due at now. It reports whether there is a report to send.
func (h *Holder) Report(now headgate.Instant, r *Report) bool {
	r.Holder, r.Claims, r.Acks = h.config.Name, r.Claims[:0], r.Acks[:0]
	if !h.connected {
		return false
	}
	h.Advance(now)
	for _, resource := range h.releases {
		r.Claims = append(r.Claims, state.Claim{Resource: resource, Release: true})
	}
	released := h.releases
	h.releases = nil
	anyDue := slices.ContainsFunc(h.claims, func(c *claim) bool { return c.due() <= now })
	for _, c := range h.claims {
		h.include(now, c, r, anyDue, released)
	}
	if len(r.Claims)+len(r.Acks) == 0 {
		return false
	}
	h.seq++
	r.Seq = h.seq
	return true
}

// include adds a claim or an acknowledgement to a report if it is due. A claim that is due soon joins
// a report that is sent anyway.
func (h *Holder) include(now headgate.Instant, c *claim, r *Report, anyDue bool, released []string) {
	joins := anyDue && c.answered && c.next.Sub(now) < c.refresh/10
	if c.due() > now && !joins || len(r.Claims) >= state.MaxClaims || slices.Contains(released, c.resource) {
		if c.ack {
			r.Acks = append(r.Acks, c.held.Ack(c.resource))
			c.ack = false
		}
		return
	}
	if c.seq == 0 || c.answered {
		c.asked = now
	}
	c.seq, c.answered, c.reported, c.said, c.ack = h.seq+1, false, now, c.wants, false
	c.held.Sent(now, c.seq)
	m := state.Claim{Resource: c.resource, Wants: c.wants, Spent: c.spent, Refused: c.failed}
	c.held.Claim(now, &m)
	c.spent, c.failed = 0, 0
	r.Claims = append(r.Claims, m)
	c.next = now.Add(h.jitter(c.retry))
	c.retry = min(2*c.retry, mostRetry)
}

// jitter returns a time between d and 1.5 d.
func (h *Holder) jitter(d time.Duration) time.Duration {
	return d + time.Duration(h.rand.Int64N(int64(d/2)+1))
}

// Receive takes the leases of an answer or a push. Leases of other resources have no effect.
func (h *Holder) Receive(now headgate.Instant, leases []state.Lease) {
	h.Advance(now)
	for i := range leases {
		c := h.by[leases[i].Resource]
		if c == nil {
			continue
		}
		before := c.answered
		c.receive(now, &leases[i])
		c.shorten(now, h.config.OnLoss)
		if c.answered && !before {
			c.next = c.reported.Add(c.refresh - h.jitter(c.refresh/15))
		}
	}
}

// Refuse takes a refusal of a claim. The holder keeps a valid lease, and reports the claim again
// after 10 s.
func (h *Holder) Refuse(now headgate.Instant, refusal *state.Refusal) {
	c := h.by[refusal.Err.Resource]
	if c == nil || refusal.Seq < c.seq {
		return
	}
	err := *refusal.Err
	err.Text = err.Text[:min(len(err.Text), MaxText)]
	c.refused, c.answered = &err, true
	c.next = now.Add(h.jitter(refusedRetry))
}

// Amount returns what the holder may use of a resource at now.
func (h *Holder) Amount(now headgate.Instant, resource string) int64 {
	if c := h.by[resource]; c != nil {
		return c.amount(now, h.config.OnLoss)
	}
	return 0
}

// Status is the state of one claim.
type Status struct {
	// Amount is what the holder may use. Limited says that it had less than it wants for 2 s. Until
	// then, the rest may be on its way.
	Amount  int64
	Limited bool
	// Slots says that amounts are slots.
	Slots bool
	// Lost says that the lease has ended without renewal.
	Lost bool
	// Left is the time until the lease ends.
	Left time.Duration
	// Wants is what the holder wants.
	Wants int64
	// Refused is the refusal of the last report, or nil.
	Refused *state.Error
}

// Status returns the state of the claim on a resource.
func (h *Holder) Status(now headgate.Instant, resource string) Status {
	c := h.by[resource]
	if c == nil {
		return Status{}
	}
	s := Status{
		Amount: c.amount(now, h.config.OnLoss), Slots: c.slots, Left: c.held.Left(now), Wants: c.wants, Refused: c.refused,
		Lost: c.leased && c.held.Left(now) <= 0,
	}
	s.Limited = c.short && now.Sub(c.shortAt) >= limitedAfter
	return s
}

// Silent returns for how long the server has not answered a report: 0 if it has answered all.
func (h *Holder) Silent(now headgate.Instant) (longest time.Duration) {
	for _, c := range h.claims {
		if c.seq != 0 && !c.answered {
			longest = max(longest, now.Sub(c.asked))
		}
	}
	return longest
}
