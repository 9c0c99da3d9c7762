package state

import "github.com/headgate/headgate"

// maxSent bounds the amounts that a ledger keeps. At the bound, two of them are merged, and one counts longer.
const maxSent = 6

// ledger knows how much of a claim may be out: what the holder may still hold by older versions, and all amounts sent since the
// acknowledged version. It keeps only amounts that are larger than all later amounts.
type ledger struct {
	acked Version // the newest acknowledged version
	n     int     // before sent, for the cache line of its first element
	sent  [maxSent]sentAmount
}

// sentAmount counts until end. The end of the newest amount is that of its claim. When a later version is sent, the end stays as
// it is: an answer that prolongs the lease has the later version. A holder without that answer has the older amount, and its end.
type sentAmount struct {
	version Version
	amount  int64
	end     headgate.Instant
}

// count returns the amount that may be out.
func (l *ledger) count() int64 {
	if l.n == 0 {
		return 0
	}
	return l.sent[0].amount
}

// last returns the newest version.
func (l *ledger) last() Version {
	if l.n == 0 {
		return Version{}
	}
	return l.sent[l.n-1].version
}

// send records that an amount was sent. The amount before it counts until end.
func (l *ledger) send(v Version, amount int64, end headgate.Instant) {
	if l.n > 0 {
		l.sent[l.n-1].end = end
	}
	for l.n > 0 && l.sent[l.n-1].amount <= amount {
		l.n--
	}
	if l.n == maxSent {
		l.merge()
	}
	l.sent[l.n] = sentAmount{version: v, amount: amount}
	l.n++
}

// merge merges the two neighbors that differ least: the larger amount counts as long as the smaller one.
func (l *ledger) merge() {
	at := 0
	for i := range l.n - 1 {
		if l.sent[i].amount-l.sent[i+1].amount < l.sent[at].amount-l.sent[at+1].amount {
			at = i
		}
	}
	l.sent[at+1].amount = l.sent[at].amount
	l.n = at + copy(l.sent[at:], l.sent[at+1:l.n])
}

// adopt records what the holder of an earlier server may hold, by a version of that server.
func (l *ledger) adopt(v Version, holds int64) {
	*l = ledger{acked: v, n: 1}
	l.sent[0] = sentAmount{version: v, amount: holds}
}

// ack records that the holder holds at most holds by version v. It never raises the count, and moves no end. A holder may use the
// whole amount of its version, so less than that is not believed.
func (l *ledger) ack(v Version, holds int64) {
	if v.Less(l.acked) || l.last().Less(v) {
		return
	}
	l.acked = v
	n := 0
	for _, a := range l.sent[:l.n] {
		if a.version.Less(v) {
			a.amount = min(a.amount, max(holds, 0))
		}
		for n > 0 && l.sent[n-1].amount <= a.amount {
			n--
		}
		l.sent[n] = a
		n++
	}
	l.n = n
}

// first returns the end of the first amount that has one, or never.
func (l *ledger) first() headgate.Instant {
	if l.n < 2 {
		return never
	}
	return l.sent[0].end
}

// expire drops the older amounts that have ended.
func (l *ledger) expire(now headgate.Instant) {
	from := 0
	for from < l.n-1 && l.sent[from].end <= now {
		from++
	}
	l.n = copy(l.sent[:], l.sent[from:l.n])
}
