package twin

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// ban remembers the attempts of its window, the first of which began it.
type ban struct {
	policy headgate.Policy
	// record is the policy that took last, or the one whose ban is under way.
	record   headgate.Policy
	attempts []entry
}

// banned reports whether the attempts are above the count of the policy of record.
func (b *ban) banned() bool {
	sum := int64(0)
	for _, a := range b.attempts {
		sum += a.units
		if sum > b.record.Limit.Count {
			return true
		}
	}
	return false
}

// ends is when the window is over, its ban included.
func (b *ban) ends() headgate.Instant {
	end := b.attempts[0].at.Add(b.record.Limit.Per)
	if b.banned() {
		end = end.Add(b.record.BanFor)
	}
	return end
}

// at gives the ban as it is at now: nothing was tried later than that, and what is over
// is forgotten. A key that is not banned goes to the policy that asks, and starts anew if
// its window is over by that one's period.
func (b *ban) at(now headgate.Instant) *ban {
	then := &ban{policy: b.policy, record: b.record, attempts: slices.Clone(b.attempts)}
	for i := range then.attempts {
		then.attempts[i].at = min(then.attempts[i].at, now)
	}
	if len(then.attempts) > 0 && now >= then.ends() {
		then.attempts = nil
	}
	if then.banned() {
		return then
	}
	then.record = then.policy
	if len(then.attempts) > 0 && now >= then.attempts[0].at.Add(then.policy.Limit.Per) {
		then.attempts = nil
	}
	return then
}

func (b *ban) Do(now headgate.Instant, cost int64, mode headgate.OpKind) Answer {
	after := b.at(now)
	if cost > 0 {
		after.attempts = append(after.attempts, entry{at: now, units: cost})
	}
	if mode != headgate.Peek {
		*b = *after
	}
	reset := time.Duration(0)
	if len(after.attempts) > 0 {
		reset = after.ends().Sub(now)
	}
	if after.banned() {
		return Answer{Verdict: headgate.Deny, Reason: headgate.Banned, Retry: reset, Reset: reset}
	}
	left := b.policy.Limit.Count
	for _, a := range after.attempts {
		left -= a.units
	}
	return Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: left, Reset: reset}
}

// Count counts an attempt, which is what Do does too.
func (b *ban) Count(now headgate.Instant, cost int64) { b.Do(now, cost, headgate.Take) }

// Return does nothing: an attempt that was made stays made.
func (b *ban) Return(int) {}

// Change lets another policy ask. A ban under way ends when the policy that set it says.
func (b *ban) Change(p headgate.Policy, _ headgate.Instant) { b.policy = p }
