package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// Server divides the capacities of resources among holders. It is not safe for concurrent use.
type Server struct {
	config    Config
	started   headgate.Instant
	resources map[string]*resource
	holders   map[string]*holder
	callers   map[string]*sender
	claimed   map[key]*claim
	queue     queue
	number    uint64 // of the last version
	arrivals  uint64 // number of claims so far
	seq       uint64 // of the last report to the parent
	divider   divider
	sums      curve
	kept      int // number of buckets of all claims
	buckets   []Bucket
	many      int // claims of a resource from which small changes wait
}

// key finds a claim.
type key struct {
	holder   *holder
	resource *resource
}

// seqBits is the width of the reports of one term in a Seq. Terms may be milliseconds since 1970: a server sends less than
// 2^20 reports in a millisecond, so the reports of a later term have larger numbers. Terms of elections grow at least once a minute:
// that is enough for 17,000 reports a second.
const seqBits = 20

// New returns a server that starts at now. It returns the error of Config.Check.
func New(config Config, now headgate.Instant) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	config.defaults()
	return &Server{
		config: config, started: now, seq: config.Term << seqBits,
		resources: make(map[string]*resource), holders: make(map[string]*holder), claimed: make(map[key]*claim),
		callers: make(map[string]*sender), divider: divider{least: make(map[int64]int64)}, many: many,
	}, nil
}

// Next returns the time of the next call of Advance, and whether there is one.
func (s *Server) Next() (at headgate.Instant, ok bool) {
	if len(s.queue) == 0 {
		return 0, false
	}
	return s.queue[0].due, true
}

// Receive takes a report of a holder. caller is the authenticated name of the sender. Answers
// whose claims are unchanged are in out at once, others after the next division. The error is an
// *Error: the report is ignored, as it is when its Seq is not new, but for its Acks.
func (s *Server) Receive(now headgate.Instant, caller string, report *Report, out *Out) error {
	rights := s.config.Callers[caller]
	if err := check(rights, report); err != nil {
		return err
	}
	h := s.holders[report.Holder]
	if h != nil && h.by.name != caller {
		return &Error{Code: Forbidden, Field: "holder", Text: "it belongs to another caller: use a new random name"}
	}
	if h == nil {
		if len(report.Claims) == 0 {
			return nil
		}
		by := s.callers[caller]
		if err := s.fullOfHolders(by, rights); err != nil {
			return err
		}
		h = s.join(by, caller, report.Holder)
	}
	h.claims++ // The holder stays if its only claim is replaced by another one.
	s.acknowledge(now, h, report.Acks)
	if report.Seq > h.seq {
		h.seq = report.Seq
		for i := range report.Claims {
			s.claim(now, h, rights, &report.Claims[i], out)
		}
	}
	if h.claims--; h.claims == 0 {
		s.leave(h)
	}
	return nil
}

// acknowledge takes acknowledgements.
func (s *Server) acknowledge(now headgate.Instant, h *holder, acks []Ack) {
	for i := range acks {
		if c := s.claimOf(h, acks[i].Resource); c != nil {
			s.ack(now, c, acks[i].Version, acks[i].Holds)
		}
	}
}

// claimOf returns the claim of a holder to a resource, or nil. Most holders have one claim, which takes no lookup.
func (s *Server) claimOf(h *holder, resource string) *claim {
	if c := h.recent; c != nil && c.resource.name == resource {
		return c
	}
	c := s.claimed[key{h, s.resources[resource]}]
	if c != nil {
		h.recent = c
	}
	return c
}

// ack takes one acknowledgement. Capacity that became free is divided at once.
func (s *Server) ack(now headgate.Instant, c *claim, v Version, holds int64) {
	before := c.ledger.count()
	c.resource.change(c, func(l *ledger) { l.ack(v, holds) })
	if c.ledger.count() < before {
		s.queue.schedule(c.resource, s.freed(c.resource, now))
	}
}

// claim takes one claim.
func (s *Server) claim(now headgate.Instant, h *holder, rights Caller, m *Claim, out *Out) {
	c := s.claimOf(h, m.Resource)
	isNew := c == nil
	switch {
	case m.Release && c != nil:
		s.queue.schedule(c.resource, now.Add(s.config.Tick))
		s.drop(c)
		return
	case m.Release:
		return
	case c == nil:
		err := s.fullOfClaims(h.by, rights, m.Resource)
		var r *resource
		if err == nil {
			r, err = s.open(now, h.by, rights, m.Resource)
		}
		if err != nil {
			out.Refusals = append(out.Refusals, Refusal{h.name, h.seq, err})
			return
		}
		c = s.enter(now, h, r, m)
	}
	if s.adopts(c, m) {
		s.first(now, c, rights, m)
	}
	s.ack(now, c, m.Version, m.Holds)
	s.use(c, m, now)
	c.end = max(c.end, now.Add(counted(s.config.Lease)))
	soonest, tick := c.heard.Add(c.resource.interval()), now.Add(s.config.Tick)
	if s.want(c, rights, m) {
		c.heard = max(soonest, now)
		if isNew && len(c.resource.claims) == 1 {
			tick = now // A request may wait for the first lease of a new resource, and there is nothing to collect.
		}
		if soonest > now || isNew || !s.estimate(c, now) {
			s.queue.schedule(c.resource, max(soonest, tick))
			if soonest <= now {
				c.answer = h.seq
				return
			}
		}
	}
	if c.answer != 0 {
		c.answer = h.seq
		return
	}
	s.refresh(c, now, out)
}

// refresh answers a claim without a change. The lease moves to the target of the last division.
func (s *Server) refresh(c *claim, now headgate.Instant, out *Out) {
	r := c.resource
	switch to := min(c.target, max(c.ledger.count(), c.grant)+max(r.free(), 0)); {
	case s.listening(r, now):
	case to < c.grant:
		s.set(c, to)
		s.queue.schedule(r, s.later(r, now))
	case to > c.grant:
		s.set(c, to)
	}
	s.reply(c, c.holder.seq, now, out)
}

// want sets what a claim wants. It reports whether that has changed.
func (s *Server) want(c *claim, rights Caller, m *Claim) (changed bool) {
	r := c.resource
	r.holders -= c.holders
	defer func() { r.holders += c.holders }()
	changed = c.learning != m.Learning
	c.learning, c.summed = m.Learning, c.summed && m.Learning
	if m.Curve != nil {
		next := m.Curve
		if s.kept+len(next)-len(c.buckets) > MaxTotalBuckets {
			next = coarse(next)
		}
		changed = changed || !slices.Equal(c.buckets, next)
		s.keep(c, next)
		known := c.holders // A restarted server does not know its holders, and their safe amounts are still in use.
		if c.holders, c.wants = max(m.Holders, 1), wants(c.buckets); m.Learning {
			c.holders = max(c.holders, known)
		}
		if c.aims == nil {
			c.aims = make([]int64, MaxBands)
		}
		return changed
	}
	s.keep(c, nil)
	own := Bucket{Band: m.Band, Weight: max(rights.Weight, 1), Wants: m.Wants}
	if own.Band == 0 {
		own.Band = rights.first()
	}
	changed = changed || c.own[0] != own || c.aims != nil
	c.own[0], c.aims, c.holders, c.wants = own, nil, 1, own.Wants
	return changed
}

// open returns the resource of a claim.
func (s *Server) open(now headgate.Instant, by *sender, rights Caller, name string) (*resource, *Error) {
	if r := s.resources[name]; r != nil {
		return r, nil
	}
	r := &resource{name: strings.Clone(name), by: by, heap: -1, soon: never, quiet: s.started}
	if s.config.Child {
		r.up = &uplink{}
	} else {
		terms := find(s.config.Resources, name)
		if terms == nil {
			return nil, &Error{Code: NotFound, Resource: name, Text: noPattern(name)}
		}
		r.configure(terms)
		r.adapted, r.marked = now, s.marks(r)
	}
	if err := s.fullOfResources(by, rights, name); err != nil {
		return nil, err
	}
	if out := s.started.Add(counted(s.config.Longest)); s.config.Restarted && now < out {
		r.quiet, r.forgotten = s.started.Add(s.config.Learn), out
		if r.up == nil {
			s.remember(r)
		}
		s.queue.schedule(r, r.quiet)
	}
	s.resources[r.name] = r
	by.resources++
	return r, nil
}

// noPattern says which pattern is missing.
func noPattern(name string) string {
	pattern := name
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		pattern = name[:i+1] + "*"
	}
	return fmt.Sprintf("no pattern matches: add {match: %q, capacity: ...} to lease.resources of the root", pattern)
}

// configure sets the terms of a resource of a root.
func (r *resource) configure(terms *Resource) {
	capacity := terms.Capacity
	if r.adapts() && terms.MinCapacity > 0 && r.terms.Capacity > 0 { // The adapted part stays.
		part := float64(r.capacity) / float64(r.terms.Capacity)
		capacity = max(int64(float64(capacity)*part), terms.MinCapacity)
	}
	r.terms, r.capacity, r.each = *terms, capacity, capacity
}

// enter adds a claim.
func (s *Server) enter(now headgate.Instant, h *holder, r *resource, m *Claim) *claim {
	s.arrivals++
	c := &claim{holder: h, resource: r, id: s.arrivals, since: now, heard: now.Add(-r.interval())}
	c.end = now.Add(counted(s.config.Lease))
	if m.Curve != nil {
		c.buckets, c.aims = []Bucket{}, make([]int64, MaxBands)
	}
	r.add(c)
	h.claims++
	h.by.claims++
	s.claimed[key{h, r}] = c
	s.aim(c, 0)
	s.queue.schedule(r, now.Add(s.config.Tick))
	return c
}

// drop removes a claim, and its holder with the last one. What came from the unknown holder goes
// back, unless the holder has acknowledged a lease of this server: an old report may have said more
// than it held.
func (s *Server) drop(c *claim) {
	if c.resource.forgotten != 0 && c.ledger.acked.Term < s.config.Term {
		c.resource.unknown += c.moved
	}
	c.resource.remove(c)
	delete(s.claimed, key{c.holder, c.resource})
	if c.holder.recent == c {
		c.holder.recent = nil
	}
	s.keep(c, nil)
	c.holder.by.claims--
	if c.holder.claims--; c.holder.claims == 0 {
		s.leave(c.holder)
	}
}

// Configure replaces the callers, and the resources of a root. Leases that are out keep their ends. A claim has the rights of
// its caller from its next report on.
func (s *Server) Configure(now headgate.Instant, resources []Resource, callers map[string]Caller) error {
	config := s.config
	config.Resources, config.Callers = resources, callers
	if err := config.Check(); err != nil {
		return err
	}
	s.config = config
	for name, r := range s.resources {
		if r.up != nil {
			continue // Its terms are those of the parent.
		}
		terms := find(resources, name)
		if terms == nil {
			terms = &Resource{Match: name, Algorithm: MaxMin}
		}
		r.configure(terms)
		r.assume()
		r.marked = s.marks(r)
		s.queue.schedule(r, now.Add(s.config.Tick))
	}
	return nil
}

// Heard returns the Seq of the newest report of a holder. It is 0 for a holder without claims.
func (s *Server) Heard(holder string) uint64 {
	h := s.holders[holder]
	if h == nil {
		return 0
	}
	return h.seq
}

// Advance does what is due at now: leases end, changes are divided, and grants are sent. It returns early when the report
// to the parent is full. Then Next is not after now: the caller sends out, and calls Advance again.
func (s *Server) Advance(now headgate.Instant, out *Out) {
	for len(s.queue) > 0 && s.queue[0].due <= now && !out.Up.full() {
		s.advance(s.queue.pop(), now, out)
	}
	s.forget(now, out)
}

func (s *Server) advance(r *resource, now headgate.Instant, out *Out) {
	s.expire(r, now)
	s.adapt(r, now)
	if len(r.claims) == 0 && now >= r.forgotten {
		s.close(r, out)
		return
	}
	if s.listening(r, now) {
		if now < r.quiet {
			s.queue.schedule(r, r.quiet)
		}
	} else {
		s.settle(r)
		s.substitute(r)
		if s.divider.divide(r, now, s.config.Lease) {
			s.queue.schedule(r, now.Add(s.config.Lease)) // The turns of equal remainders.
		}
		s.bound(r, now)
		s.raise(r, now, out)
		s.hand(r, now, out)
	}
	if r.up != nil {
		s.report(r, now, out)
	}
	s.next(r, now)
}

// listening reports whether all leases stay as they are: the server has started again, or its
// parent has not answered yet.
func (s *Server) listening(r *resource, now headgate.Instant) bool {
	return now < r.quiet || r.up != nil && !r.up.known
}

// next schedules the end of the first lease, and a shrink that may be lost. Each end costs a pass over all claims: those of one
// tick have a common one.
func (s *Server) next(r *resource, now headgate.Instant) {
	at := max(r.soon, now.Add(s.config.Tick))
	for _, c := range r.claims {
		if c.open() {
			at = min(at, max(c.pushed.Add(resend), now.Add(resend/10)))
		}
	}
	if r.unknown > 0 {
		at = min(at, r.forgotten)
	}
	if r.up != nil && r.up.held.Left(now) > 0 {
		at = min(at, r.up.held.end)
	}
	if r.kept {
		at = min(at, max(r.up.grace.end, now.Add(s.config.Tick)))
	}
	s.queue.schedule(r, min(at, r.adaptsAt(now), s.lowersAt(r, now)))
}

// expire removes the claims whose leases have ended, older amounts, and what the unknown holder held.
func (s *Server) expire(r *resource, now headgate.Instant) {
	if now >= r.forgotten {
		r.unknown, r.forgotten = 0, 0
	}
	if r.up != nil {
		s.expireUp(r, now)
	}
	if now < r.soon {
		return
	}
	r.soon = never
	var ended []*claim
	for _, c := range r.claims {
		if c.end <= now {
			ended = append(ended, c)
			continue
		}
		r.change(c, func(l *ledger) { l.expire(now) })
		r.soon = min(r.soon, c.end, c.ledger.first())
	}
	slices.SortFunc(ended, func(a, b *claim) int { return cmp.Compare(a.id, b.id) })
	for _, c := range ended {
		s.drop(c)
	}
}

// close forgets a resource without claims, and releases it at the parent.
func (s *Server) close(r *resource, out *Out) {
	delete(s.resources, r.name)
	r.by.resources--
	s.part(r.by)
	if r.marked {
		out.Marks = append(out.Marks, Mark{r.name, NoMark})
	}
	if r.up != nil && r.up.seq != 0 {
		s.stamp(out)
		out.Up.Claims = append(out.Up.Claims, Claim{Resource: r.name, Release: true})
	}
}
