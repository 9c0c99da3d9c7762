package twin

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// ban is a twin that remembers all attempts of the window. The first attempt starts the window.
type ban struct {
	policy headgate.Policy
	// record is the policy of the last take, or the policy of the active ban.
	record   headgate.Policy
	attempts []entry
}

// banned reports whether the attempts exceed the count of the policy of record.
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

// ends returns the end of the window, including a ban.
func (b *ban) ends() headgate.Instant {
	end := b.attempts[0].at.Add(b.record.Limit.Per)
	if b.banned() {
		end = end.Add(b.record.BanFor)
	}
	return end
}

// at returns the ban as it is at now. Later attempts move to now, and a window that is over
// is dropped. If the key is not banned, the deciding policy becomes the policy of
// record, and its period decides whether the window is over.
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

// Count counts an attempt, as Do does.
func (b *ban) Count(now headgate.Instant, cost int64) { b.Do(now, cost, headgate.Take) }

// Return does nothing: attempts cannot be returned.
func (b *ban) Return(int) {}

// Change sets the policy of the next decisions. An active ban keeps the end that its own
// policy set.
func (b *ban) Change(p headgate.Policy, _ headgate.Instant) { b.policy = p }
