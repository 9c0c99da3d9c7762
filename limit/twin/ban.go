package twin

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// ban remembers the attempts of its window, the first of which began it.
type ban struct {
	policy   headgate.Policy
	attempts []entry
	// held, if a policy before this one banned the key, is when that ban ends.
	held *headgate.Instant
}

func (b *ban) banned() bool {
	sum := int64(0)
	for _, a := range b.attempts {
		sum += a.units
		if sum > b.policy.Limit.Count {
			return true
		}
	}
	return false
}

// ends is when the window is over, its ban included.
func (b *ban) ends() headgate.Instant {
	end := b.attempts[0].at.Add(b.policy.Limit.Per)
	if !b.banned() {
		return end
	}
	end = end.Add(b.policy.BanFor)
	if b.held != nil {
		end = min(end, *b.held)
	}
	return end
}

// at gives the ban as it is at now: nothing was tried later than that, an end that
// it was held to moves with its beginning, and what is over is forgotten.
func (b *ban) at(now headgate.Instant) *ban {
	then := &ban{policy: b.policy, attempts: slices.Clone(b.attempts), held: b.held}
	if len(then.attempts) > 0 && then.held != nil {
		moved := then.held.Add(-max(0, then.attempts[0].at.Sub(now)))
		then.held = &moved
	}
	for i := range then.attempts {
		then.attempts[i].at = min(then.attempts[i].at, now)
	}
	if len(then.attempts) > 0 && now >= then.ends() {
		then.attempts, then.held = nil, nil
	}
	return then
}

func (b *ban) Do(now headgate.Instant, cost int64, mode headgate.Mode) Answer {
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

// Undo does nothing: an attempt that was made stays made.
func (b *ban) Undo(int) {}

// Change keeps the attempts. A key that was banned, and would be now, is banned
// until its old end or the new one; one that is not starts anew if its window is
// over by the new period.
func (b *ban) Change(p headgate.Policy, now headgate.Instant) {
	*b = *b.at(now)
	if len(b.attempts) == 0 {
		b.policy = p
		return
	}
	was, end := b.banned(), b.ends()
	b.policy, b.held = p, nil
	switch {
	case was && b.banned():
		b.held = &end
	case now >= b.attempts[0].at.Add(p.Limit.Per):
		b.attempts = nil
	}
}
