package state

import (
	"time"

	"github.com/headgate/headgate"
)

// Held is the holder's half of one claim: what it holds, and until when. The zero Held holds
// nothing. It is not safe for concurrent use.
type Held struct {
	version Version
	amount  int64
	end     headgate.Instant
	sent    [8]sentReport // reports, in order: ends are counted from them
	n       int           // number of sent
	open    bool          // an answer has arrived since Reset
	lease   Lease
}

type sentReport struct {
	seq     uint64
	at      headgate.Instant
	version Version // in the report
}

// apart is the time between reports that a full Held remembers: it remembers those of the last two seconds at least, however many
// there are. A lease is renewed if its answer arrives within that time.
const apart = 250 * time.Millisecond

// Sent records that a report with the claim is sent now. A report that is sent again keeps its Seq
// and the time of its first sending. After the end of a lease, the report states no version, so that
// the lease of any server can follow.
func (h *Held) Sent(now headgate.Instant, seq uint64) {
	if h.open && h.Left(now) <= 0 {
		h.version, h.amount, h.open = Version{}, 0, false
	}
	switch last := len(h.sent) - 1; {
	case h.n <= last:
		h.n++
	case h.sent[last].at.Sub(h.sent[last-1].at) >= apart:
		copy(h.sent[:], h.sent[1:])
	}
	h.sent[h.n-1] = sentReport{seq, now, h.version}
}

// Receive takes a lease from the server, in any order. It reports whether the holder must
// acknowledge: the amount has changed. An answer to a report that Held does not remember is like a
// push. These have no effect: a push before the first answer, a lease of a server with an older term,
// and a lease of a new server that does not know the newest version. That server takes the amount
// from the next report.
func (h *Held) Receive(lease *Lease) (acknowledge bool) {
	report, ok := h.report(lease.Seq)
	switch {
	case !ok && !h.open, lease.Version.Term < h.version.Term:
		return false
	case h.version.Term < lease.Version.Term && (!ok || report.version != h.version):
		return false
	case ok:
		h.end = max(h.end, report.at.Add(max(lease.Length, 0)))
		h.open = true
	}
	if lease.Version.Less(h.version) {
		return false
	}
	acknowledge = h.version.Less(lease.Version)
	h.version, h.amount, h.lease = lease.Version, lease.Amount, *lease
	return acknowledge
}

// report returns the report with a number.
func (h *Held) report(seq uint64) (report sentReport, ok bool) {
	for _, s := range h.sent {
		if s.seq == seq && seq != 0 {
			return s, true
		}
	}
	return sentReport{}, false
}

// Amount returns what the holder may use at now: 0 after the end of the lease.
func (h *Held) Amount(now headgate.Instant) int64 {
	if h.Left(now) <= 0 {
		return 0
	}
	return h.amount
}

// Left returns the time until the end of the lease. It is 0 without a lease.
func (h *Held) Left(now headgate.Instant) time.Duration {
	if !h.open {
		return 0
	}
	return max(h.end.Sub(now), 0)
}

// Lease returns the newest lease: its amount is what the version gave, even after its end.
func (h *Held) Lease() *Lease { return &h.lease }

// Claim fills the fields of a claim that say what the holder holds.
func (h *Held) Claim(now headgate.Instant, claim *Claim) {
	claim.Version, claim.Holds, claim.Left = h.version, h.amount, h.Left(now)
	claim.Unbacked = claim.Left > 0 && h.lease.Unbacked
}

// Ack returns the acknowledgement of the newest version.
func (h *Held) Ack(resource string) Ack {
	return Ack{Resource: resource, Version: h.version, Holds: h.amount}
}
