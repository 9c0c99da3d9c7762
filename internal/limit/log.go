package limit

import (
	"fmt"

	"github.com/headgate/headgate"
)

// EntryWords is the number of words of a log entry: its time and its units.
const EntryWords = 2

// Log is the state of a sliding log: the counted units with their times, oldest first, in a
// ring that the store owns. Units of one time share an entry. The log keeps at most as many
// units as the largest Count in use, because older units have no effect. All policies of one
// Family count in one Log.
type Log struct {
	// Ring holds len(Ring)/EntryWords entries.
	Ring  []int64
	Head  int
	Len   int
	Units int64
	// Trimmed is the time of the newest unit that was dropped while it was still in the window.
	Trimmed headgate.Instant
	// Most is the largest Count in use, and MostAt the last time at which a policy with this
	// Count took units. For one period after MostAt, a take under a smaller Count drops no
	// unit that Most can count.
	Most   int64
	MostAt headgate.Instant
	// Owed are the units of a debt that are in no entry yet. They count as soon as they fit.
	Owed int64
	// Moved counts the long steps back of the clock that moved the entries. The store adds
	// Moved to the epoch of the state, because receipts no longer find their entries.
	Moved uint16
}

// Room reports whether the ring has capacity for one more entry.
func (l *Log) Room() bool { return (l.Len+1)*EntryWords <= len(l.Ring) }

// slot returns the ring index of the i-th entry, counted from the oldest.
func (l *Log) slot(i int) int {
	n := len(l.Ring) / EntryWords
	i += l.Head
	if i >= n {
		i -= n
	}
	return i * EntryWords
}

// CopyTo moves the entries into a new ring, oldest first.
func (l *Log) CopyTo(ring []int64) {
	for i := range l.Len {
		copy(ring[i*EntryWords:(i+1)*EntryWords], l.Ring[l.slot(i):])
	}
	l.Ring, l.Head = ring, 0
}

// newest returns the time of the last entry.
func (l *Log) newest() headgate.Instant { return headgate.Instant(l.Ring[l.slot(l.Len-1)]) }

// oldest returns the time of the first entry.
func (l *Log) oldest() headgate.Instant { return headgate.Instant(l.Ring[l.slot(0)]) }

// JudgeLog decides cost at now into d and takes nothing. It drops entries that have left the
// window (now-Per, now].
func (p *Plan) JudgeLog(l *Log, now headgate.Instant, cost int64, d *headgate.Decision) {
	at := p.expire(l, now)
	d.At, d.Carried, d.Limit = at, false, p.count
	d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
	d.Receipt = headgate.Receipt{Cost: cost, From: at}
	used := min(l.Units, p.count) // Counted refusals, or a larger Count, can exceed this Count.
	switch {
	case cost > p.count:
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
	case used+cost > p.count:
		d.Verdict, d.Reason = headgate.Deny, headgate.OverLimit
		d.RetryAfter = p.leavesAt(l, l.Units+cost-p.count).Sub(now)
	default:
		used += cost
	}
	d.Remaining = max(0, p.count-used)
	d.ResetAfter = 0
	switch {
	case d.Verdict == headgate.Allow && cost > 0:
		d.ResetAfter = (at + headgate.Instant(p.per)).Sub(now)
	case l.Len > 0:
		d.ResetAfter = p.LogFreeAt(l).Sub(now)
	}
}

// expire drops entries that are at least one window old, and returns the time of the
// decision. After a step back of up to one window, that time is the newest entry. After a
// longer step, the entries move to the present.
func (p *Plan) expire(l *Log, now headgate.Instant) headgate.Instant {
	if l.Len > 0 && l.newest() > now {
		if ahead := l.newest() - now; ahead > headgate.Instant(p.per) {
			l.shift(ahead)
		} else {
			now = l.newest()
		}
	}
	if l.Owed > 0 {
		p.payLog(l, now)
	}
	for l.Len > 0 && l.oldest()+headgate.Instant(p.per) <= now {
		l.dropOldest()
	}
	return now
}

// trim drops the oldest units until at most Most units remain. Counted refusals can exceed
// Most.
func (p *Plan) trim(l *Log, at headgate.Instant) {
	if p.count >= l.Most || at >= l.MostAt+headgate.Instant(p.per) {
		l.Most, l.MostAt = p.count, at
	}
	for l.Units > l.Most {
		oldest := l.slot(0)
		l.Trimmed = headgate.Instant(l.Ring[oldest])
		excess := l.Units - l.Most
		if l.Ring[oldest+1] > excess {
			l.Ring[oldest+1] -= excess
			l.Units -= excess
			return
		}
		l.dropOldest()
	}
}

func (l *Log) dropOldest() {
	l.Units -= l.Ring[l.slot(0)+1]
	l.Head = l.slot(1) / EntryWords
	l.Len--
}

func (l *Log) shift(back headgate.Instant) {
	for i := range l.Len {
		l.Ring[l.slot(i)] -= int64(back)
	}
	l.Trimmed -= min(back, l.Trimmed)
	l.MostAt -= min(back, l.MostAt)
	l.Moved++
}

// leavesAt returns the time at which n of the kept units have left the window.
func (p *Plan) leavesAt(l *Log, n int64) headgate.Instant {
	if l.Owed > 0 {
		return p.leavesOwing(l, n+l.Owed)
	}
	return p.entryLeavesAt(l, n)
}

// entryLeavesAt is leavesAt without a debt.
func (p *Plan) entryLeavesAt(l *Log, n int64) headgate.Instant {
	for i := range l.Len {
		s := l.slot(i)
		if n -= l.Ring[s+1]; n <= 0 {
			return headgate.Instant(l.Ring[s]) + headgate.Instant(p.per)
		}
	}
	return l.newest() + headgate.Instant(p.per)
}

// TakeLog counts what JudgeLog has just decided at now. The RetryAfter of a refusal then
// includes the counted attempt. The log must have Room for an entry.
func (p *Plan) TakeLog(l *Log, now headgate.Instant, d *headgate.Decision) {
	cost, at := d.Receipt.Cost, d.Receipt.From
	if cost == 0 {
		return
	}
	l.add(at, cost)
	p.trim(l, at)
	if d.Verdict == headgate.Deny {
		d.RetryAfter = p.leavesAt(l, l.Units+cost-p.count).Sub(now)
		d.ResetAfter = p.LogFreeAt(l).Sub(now)
	}
}

// add counts units at a time that is not before that of the newest entry.
func (l *Log) add(at headgate.Instant, units int64) {
	l.Units += units
	if l.Len > 0 && l.newest() == at {
		l.Ring[l.slot(l.Len-1)+1] += units
		return
	}
	s := l.slot(l.Len)
	l.Ring[s], l.Ring[s+1] = int64(at), units
	l.Len++
}

// ReturnLog removes the units of r from the entry of their time, and reports whether any
// units were still there. It returns nothing while trimmed units would still count: they
// take the place of the returned units.
func (p *Plan) ReturnLog(l *Log, r *headgate.Receipt, now headgate.Instant) bool {
	i := l.find(r.From)
	if i < 0 || l.Trimmed > 0 && l.Trimmed > now-headgate.Instant(p.per) {
		return false
	}
	s := l.slot(i)
	units := min(l.Ring[s+1], r.Units())
	l.Ring[s+1] -= units
	l.Units -= units
	if l.Ring[s+1] == 0 {
		l.remove(i)
	}
	return units > 0
}

// find returns the index of the entry with time at, or -1. It is a binary search.
func (l *Log) find(at headgate.Instant) int {
	low, high := 0, l.Len
	for low < high {
		mid := (low + high) / 2
		if headgate.Instant(l.Ring[l.slot(mid)]) < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < l.Len && headgate.Instant(l.Ring[l.slot(low)]) == at {
		return low
	}
	return -1
}

// remove deletes entry i. The cost is the number of newer entries.
func (l *Log) remove(i int) {
	for ; i < l.Len-1; i++ {
		copy(l.Ring[l.slot(i):l.slot(i)+EntryWords], l.Ring[l.slot(i+1):])
	}
	l.Len--
}

// LogFreeAt returns the instant from which the log has the same effect as an empty log.
func (p *Plan) LogFreeAt(l *Log) headgate.Instant {
	switch {
	case l.Len == 0:
		return 0
	case l.Owed > 0:
		return p.leavesOwing(l, l.Units+l.Owed)
	}
	return l.newest() + headgate.Instant(p.per)
}

// LogBound returns the largest number of entries in a log that only this plan uses.
func (p *Plan) LogBound() int { return int(max(p.count, 1)) }

// LogPassesAt is CellPassesAt for a log.
func (p *Plan) LogPassesAt(l *Log, now headgate.Instant) headgate.Instant {
	switch {
	case p.count == 0:
		return never
	case l.Owed > 0 && l.Len > 0:
		return max(now, p.leavesOwing(l, l.Units+l.Owed+1-p.count))
	case l.Units < p.count:
		return now
	case l.Units > p.count:
		return max(now, p.leavesAt(l, l.Units+1-p.count))
	default:
		return max(now, headgate.Instant(l.Ring[l.slot(0)])+headgate.Instant(p.per))
	}
}

// RefundLog removes the newest cost units from the log, and reports whether any units were
// removed. The store then changes the epoch of the state. As ReturnLog, it removes nothing while
// trimmed units would still count.
func (p *Plan) RefundLog(l *Log, now headgate.Instant, cost int64) bool {
	at := p.expire(l, now)
	before := l.Units + l.Owed
	if l.Trimmed == 0 || l.Trimmed <= at-headgate.Instant(p.per) {
		owed := min(l.Owed, cost)
		l.Owed -= owed
		l.dropNewest(cost - owed)
	}
	return l.Units+l.Owed < before
}

// dropNewest removes up to n units, newest first.
func (l *Log) dropNewest(n int64) {
	for n > 0 && l.Len > 0 {
		newest := l.slot(l.Len - 1)
		units := min(l.Ring[newest+1], n)
		l.Ring[newest+1] -= units
		l.Units -= units
		n -= units
		if l.Ring[newest+1] == 0 {
			l.Len--
		}
	}
}

func validateLog(p headgate.Policy) error {
	if err := validateWindow(p); err != nil {
		return err
	}
	if p.Limit.Count > MaxLogCount {
		return &PolicyError{
			"count", fmt.Sprintf("%d is too long a log", p.Limit.Count),
			fmt.Sprintf("use at most %d, or sliding_window", MaxLogCount),
		}
	}
	return nil
}
