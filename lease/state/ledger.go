package state

// maxSent bounds the amounts that a ledger keeps. A further amount is merged with the amount
// before it, which then counts longer.
const maxSent = 4

// ledger knows how much of a claim may be out: the largest of the acknowledged amount and all
// amounts sent since. It keeps only amounts that are larger than all later amounts.
type ledger struct {
	acked Version // the newest acknowledged version
	base  int64   // what the holder holds by that version
	last  sentAmount
	sent  [maxSent]sentAmount
	n     int
}

type sentAmount struct {
	version Version
	amount  int64
}

// count returns the amount that may be out.
func (l *ledger) count() int64 {
	if l.n == 0 {
		return l.base
	}
	return max(l.base, l.sent[0].amount)
}

// send records that an amount was sent.
func (l *ledger) send(v Version, amount int64) {
	l.last = sentAmount{v, amount}
	for l.n > 0 && l.sent[l.n-1].amount <= amount {
		l.n--
	}
	if l.n == maxSent {
		l.n--
		amount = l.sent[l.n].amount
	}
	l.sent[l.n] = sentAmount{v, amount}
	l.n++
}

// adopt records what the holder of an earlier server may hold, by a version of that server.
func (l *ledger) adopt(v Version, holds int64) {
	*l = ledger{acked: v, base: holds, last: sentAmount{version: v}}
}

// ack records that the holder holds at most holds by version v. It never raises the count. A
// holder may use the whole amount of its version, so less than that is not believed.
func (l *ledger) ack(v Version, holds int64) {
	if v.Less(l.acked) || l.last.version.Less(v) {
		return
	}
	before := l.count()
	done := 0
	for done < l.n && !v.Less(l.sent[done].version) {
		done++
	}
	switch {
	case v == l.last.version:
		holds = max(holds, l.last.amount)
	case done > 0 && l.sent[done-1].version == v:
		holds = max(holds, l.sent[done-1].amount)
	}
	if v == l.acked {
		before = l.base
	}
	l.n = copy(l.sent[:], l.sent[done:l.n])
	l.acked, l.base = v, min(max(holds, 0), before)
}
