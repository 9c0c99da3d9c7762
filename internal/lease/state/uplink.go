package state

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// uplink is the half of a resource that is a holder at the parent.
type uplink struct {
	held     Held
	grace    Grace
	known    bool     // the parent has answered
	said     []Bucket // the last curve in a report
	sentAt   headgate.Instant
	seq      uint64 // the last report with the claim
	answered uint64 // the newest report that was answered
	acked    Version
	holds    int64 // in the last acknowledgement
	refresh  time.Duration
	retry    time.Duration // a report without an answer is repeated after it
	learning bool          // in the last claim
}

// leastRetry is the least time after which a report without an answer is repeated, and mostRetry the largest. Between, it is twice
// the time that the last answer needed, and twice the last time after each repetition: a busy parent gets few reports before its
// first answer, and Held remembers the report that it answers.
const leastRetry, mostRetry = 500 * time.Millisecond, 4 * time.Second

// repeatAfter returns the time after which a report without an answer is repeated.
func (u *uplink) repeatAfter() time.Duration { return max(u.retry, leastRetry) }

// repeats waits longer for the next answer if a report at now repeats one without an answer.
func (u *uplink) repeats(now headgate.Instant) {
	if u.answered != u.seq && now.Sub(u.sentAt) >= u.repeatAfter() {
		u.retry = min(2*u.repeatAfter(), mostRetry)
	}
}

// holds returns what the server and its holders may use: all amounts that it counts.
func (r *resource) holds() int64 { return max(r.up.held.amount, r.counted()) }

// counted returns what may be out. Until the parent has answered, the holders say what the unknown holder has.
func (r *resource) counted() int64 { return r.sum + max(r.unknown, r.noted) }

// backed returns the amount that the ledger of the parent has for this server at least: what the
// newest version gave, or what an acknowledgement said that it holds.
func (r *resource) backed() int64 { return max(r.up.held.amount, r.up.held.Lease().Counted) }

// report appends to out what the parent must know: a step of a shrink, a changed curve, a refresh.
func (s *Server) report(r *resource, now headgate.Instant, out *Out) {
	up := r.up
	holds := r.holds()
	switch {
	case s.claims(r, now):
		s.claimUp(r, now, out)
	case up.acked != up.held.version || holds < up.holds:
		out.Up.Acks = append(out.Up.Acks, Ack{Resource: r.name, Version: up.held.version, Holds: holds})
		s.stamp(out)
	default:
		return
	}
	up.acked, up.holds = up.held.version, holds
}

// claims reports whether it is time for a claim to the parent. Otherwise the resource is due then.
func (s *Server) claims(r *resource, now headgate.Instant) bool {
	up := r.up
	refresh := up.refresh
	if up.seq == 0 || up.learning && !s.listening(r, now) {
		return true
	}
	if up.answered != up.seq {
		refresh = up.repeatAfter()
	}
	soonest := up.sentAt.Add(r.interval())
	at := up.sentAt.Add(refresh)
	if s.curve(r); differ(s.buckets, up.said) {
		at = min(at, soonest)
	}
	if at <= now {
		return true
	}
	s.queue.schedule(r, at)
	return false
}

// curve collects the buckets of all claims in s.buckets.
func (s *Server) curve(r *resource) {
	s.sums = curve{}
	var all Bucket
	for _, c := range r.claims {
		for _, b := range c.all() {
			s.sums.add(b)
			all.Weight += b.Weight
		}
		all.Wants += c.wants
	}
	if left := min(r.counted()-all.Wants, MaxAmount); left > 0 && s.restarted(r) && all.Wants > 0 {
		// Ask for at least what is out: as if unknown holders were like the known ones.
		weight := float64(all.Weight) * float64(left) / float64(all.Wants)
		s.sums.add(Bucket{Band: 1, Weight: int64(min(max(weight, 1), MaxBucketWeight)), Wants: left})
	}
	s.buckets = s.sums.buckets(s.buckets[:0])
}

// restarted reports whether leases of an earlier server may be out.
func (s *Server) restarted(r *resource) bool { return s.config.Restarted && r.forgotten != 0 }

// claimUp appends the claim of the resource.
func (s *Server) claimUp(r *resource, now headgate.Instant, out *Out) {
	up := r.up
	s.curve(r)
	up.said = append(up.said[:0], s.buckets...)
	s.stamp(out)
	up.repeats(now)
	before := up.sentAt
	up.seq, up.sentAt = out.Up.Seq, now
	up.held.Sent(now, up.seq)
	// Without a curve and holders, the claim would be that of a holder that is not a server.
	claim := Claim{Resource: r.name, Curve: append([]Bucket{}, s.buckets...), Holders: max(r.holders, 1)}
	claim.Learning = s.config.Restarted && s.listening(r, now)
	up.held.Claim(now, &claim)
	r.reported(&claim, now.Sub(before))
	claim.Holds = min(max(r.up.held.amount, r.counted()-r.apart), MaxAmount)
	if up.learning = claim.Learning; !up.learning {
		r.together()
	}
	out.Up.Claims = append(out.Up.Claims, claim)
	s.queue.schedule(r, now.Add(leastRetry))
}

// stamp gives the report of out its Seq.
func (s *Server) stamp(out *Out) {
	if out.Up.Seq == 0 {
		s.seq++
		out.Up.Seq = s.seq
	}
}

// ReceiveParent takes leases of the parent. Leases of resources without claims are ignored.
func (s *Server) ReceiveParent(now headgate.Instant, leases []Lease) {
	for i := range leases {
		lease := &leases[i]
		if r := s.resources[lease.Resource]; r != nil && r.up != nil {
			s.receive(r, now, lease)
		}
	}
}

func (s *Server) receive(r *resource, now headgate.Instant, lease *Lease) {
	up := r.up
	if report, ok := up.held.report(lease.Seq); ok {
		up.retry = min(2*now.Sub(report.at), mostRetry)
	}
	lost := r.lost || r.isUnbacked(now)
	up.held.Receive(lease)
	if !up.held.open {
		return
	}
	if lease.Seq != 0 {
		up.answered = max(up.answered, lease.Seq)
		up.refresh = max(lease.Refresh, s.config.Tick)
	}
	if s.restarted(r) && s.listening(r, now) {
		s.learned(r, now)
	}
	first := !up.known
	up.known = true
	if r.lost && up.held.Left(now) <= 0 {
		return
	}
	newest := up.held.Lease()
	up.grace.Receive(now, newest)
	safe, waits := newest.Safe, up.grace.Left(now) > 0
	if waits && !first { // The parent may not know all holders, among which a capacity is divided.
		safe = min(safe, r.terms.Safe)
	}
	r.kept = waits && (lost || r.kept) && s.config.OnLoss != LossPessimistic
	s.follow(r, now, safe)
	s.queue.schedule(r, now)
}

// RefuseParent takes a refusal of the parent: the claims of the resource get it, and end.
func (s *Server) RefuseParent(refused *Error, out *Out) {
	r := s.resources[refused.Resource]
	if r == nil || r.up == nil {
		return
	}
	for _, c := range slices.Clone(r.claims) {
		out.Refusals = append(out.Refusals, Refusal{c.holder.name, c.answer, refused})
		s.drop(c)
	}
	r.unknown, r.forgotten = 0, 0
	s.queue.schedule(r, 0)
}

// lapse follows the end of the lease of the parent: no lease that it has backed outlives it. Leases that were given without one
// may be out, from an earlier loss, and count until they end. Config.OnLoss says what the server divides from now on.
func (s *Server) lapse(r *resource, now headgate.Instant) {
	for _, c := range r.claims {
		if now >= r.unbacked {
			r.change(c, func(l *ledger) { l.n = 0 })
		}
		c.moved = 0
		s.set(c, 0)
	}
	r.capacity, r.unknown = 0, 0
	r.lost = s.config.OnLoss != LossPessimistic
	s.substitute(r)
}

// substitute sets the capacity of a resource without a lease of the parent, for the present number of holders.
func (s *Server) substitute(r *resource) {
	switch {
	case !r.lost:
	case !s.onSafe(r):
		r.capacity, r.each = MaxAmount, MaxAmount
	default:
		r.capacity, r.each = scaled(r.terms.Safe, r.holders), min(r.each, r.terms.Safe)
	}
}

// onSafe reports whether the safe amounts are the capacity. An optimistic server gives what is wanted only until its parent answers.
func (s *Server) onSafe(r *resource) bool {
	return r.lost && (s.config.OnLoss == LossSafe || r.kept)
}

// bound keeps targets within the safe amounts while they are the capacity, of this server or of one above it. A holder without a
// lease uses its safe amount, and the server does not know which holders have one. So no holder gets what another one does not want.
func (s *Server) bound(r *resource, now headgate.Instant) {
	if !s.onSafe(r) && (s.config.OnLoss != LossSafe || !r.isUnbacked(now)) {
		return
	}
	for _, c := range r.claims {
		most := scaled(r.terms.Safe, c.holders)
		over := c.target - most
		c.target = min(c.target, most)
		cut(c.aims, over)
	}
}

// scaled returns n amounts, at most MaxAmount.
func scaled(amount, n int64) int64 {
	if n > 0 && amount > MaxAmount/n {
		return MaxAmount
	}
	return amount * n
}
