package state

import (
	"time"

	"github.com/headgate/headgate"
)

// markEvery is the shortest time from a change of a mark to one that lowers it.
const markEvery = 5 * time.Second

// NoMark is the amount of a Mark that is deleted.
const NoMark = -1

// Mark is a bound of what is out of a resource. The next master of the group counts it in place of the capacity.
type Mark struct {
	Resource string
	Amount   int64
}

// mark is the mark of a resource.
type mark struct {
	asked   int64 // the last one that was sent
	low     int64 // the least amount that may be stored: the ledger stays below
	changed headgate.Instant
	erased  bool // it was deleted, because the algorithm of the resource has none
}

// marks reports whether a resource has a mark: those of a root whose ledger is bounded.
func (s *Server) marks(r *resource) bool {
	return s.config.Marked && r.up == nil && r.terms.Algorithm.divides()
}

// out returns what may be out of a resource.
func (r *resource) out() int64 { return r.sum + r.unknown }

// above returns the mark for what is out: 1.1 times as much, at most the capacity or what is out.
func (r *resource) above(out int64) int64 { return max(min(out+out/10, r.capacity), out) }

// most returns what may be out when all claims have their targets.
func (r *resource) most() int64 {
	most := r.out()
	for _, c := range r.claims {
		if c.target > c.grant {
			most += c.missing()
		}
	}
	return max(min(most, r.capacity), r.out())
}

// raise asks for a mark that all targets fit in, or lowers a mark that is too large. A mark of before the algorithm changed does not
// bound what is given without one, so it is deleted.
func (s *Server) raise(r *resource, now headgate.Instant, out *Out) {
	if !s.marks(r) {
		if s.config.Marked && r.up == nil && !r.mark.erased {
			r.mark = mark{erased: true}
			out.Marks = append(out.Marks, Mark{r.name, NoMark})
		}
		return
	}
	most, m := r.most(), &r.mark
	switch wanted := r.above(most); {
	case most > m.asked:
		s.setMark(r, wanted, now, out)
	case m.low == m.asked && wanted < m.asked && now.Sub(m.changed) >= markEvery:
		s.setMark(r, wanted, now, out)
	}
}

// lowersAt returns the time at which raise lowers the mark, or never. It has the same condition: a time before now would make
// Advance endless.
func (s *Server) lowersAt(r *resource, now headgate.Instant) headgate.Instant {
	if m := &r.mark; r.marked && m.low == m.asked && r.above(r.most()) < m.asked {
		return max(m.changed.Add(markEvery), now.Add(s.config.Tick))
	}
	return never
}

// setMark sends a mark. Until it is stored, the ledger stays below the old one and the new one.
func (s *Server) setMark(r *resource, amount int64, now headgate.Instant, out *Out) {
	r.mark = mark{asked: amount, low: min(r.mark.low, amount), changed: now}
	out.Marks = append(out.Marks, Mark{r.name, amount})
}

// Stored says that marks are stored, in the order in which they were sent. Some may be left out if a later one of the same
// resource was sent. What waits for them is granted at the next Advance.
func (s *Server) Stored(now headgate.Instant, marks []Mark) {
	for _, stored := range marks {
		r := s.resources[stored.Resource]
		if r == nil || stored.Amount == NoMark {
			continue
		}
		r.mark.low = min(stored.Amount, r.mark.asked)
		s.queue.schedule(r, now)
	}
}

// remember sets what an earlier server may have out of a resource. Without a mark, it may be the capacity.
func (s *Server) remember(r *resource) {
	r.unknown, r.assumed = r.capacity, r.capacity
	if amount, ok := s.config.Marks[r.name]; ok && s.marks(r) {
		amount = min(max(amount, 0), MaxAmount)
		r.unknown, r.mark.asked, r.mark.low = amount, amount, amount
		r.assumed = MaxAmount
	}
}

// assume follows a raised capacity. Without a mark, the earlier server may have had as much, and all of it may be out.
func (r *resource) assume() {
	if more := r.capacity - r.assumed; r.forgotten != 0 && more > 0 {
		r.unknown, r.assumed = r.unknown+more, r.capacity
	}
}

// forget deletes the marks of an earlier server whose resources have no claims, when its leases have ended.
func (s *Server) forget(now headgate.Instant, out *Out) {
	if len(s.config.Marks) == 0 || now < s.started.Add(counted(s.config.Longest)) {
		return
	}
	for name := range s.config.Marks {
		if s.resources[name] == nil {
			out.Marks = append(out.Marks, Mark{name, NoMark})
		}
	}
	s.config.Marks = nil
}

// waits reports whether a claim without an amount gets its first one when a mark is stored. Until then it gets no answer. Other
// answers renew leases, and do not wait.
func (r *resource) waits(c *claim) bool {
	return c.grant == 0 && c.target > 0 && r.mark.low < r.mark.asked
}
