package script

import (
	"github.com/headgate/headgate"
)

// explainBucket is limit's judgeBucket and explainBucket in microseconds. The reply has the time by
// which the bucket is ahead of now: microseconds, their part, and the version.
func (a *answer) explainBucket(d *headgate.Decision) error {
	p := a.plan
	from := span{us: a.now}
	if !p.blocks {
		from.us += a.told[0]
		if p.interval.part > 0 {
			from.part = a.told[1]
		}
		// Another policy of the family may have booked beyond this one's horizon.
		ahead := from.us - a.now
		if ahead < 0 || ahead > farthestBucket || from.part < 0 || from.part >= p.den || !isVersion(a.told[p.width-1]) {
			return wrong("%v for a bucket of %s", a.told, p.policy.Limit)
		}
	}
	to := a.judgeBucket(d, from)
	edge := span{a.now, 0}.add(p.refill, p.den)
	d.At = instant(a.now)
	d.ResetAfter = micros(span{to.us - a.now, to.part}.ceil())
	if left := edge.sub(to, p.den); left.us >= 0 && !p.blocks {
		d.Remaining = p.wholeUnits(left)
	}
	d.Receipt.From, d.Receipt.FromPart = instant(from.us), uint64(from.part)
	return nil
}

// judgeBucket gives verdict, reason and retry, and the bucket's time afterwards.
func (a *answer) judgeBucket(d *headgate.Decision, from span) span {
	p := a.plan
	if a.cost > p.room {
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
		return from
	}
	to := from.add(p.spanOf(a.cost), p.den)
	late := to.sub(span{a.now, 0}.add(p.refill, p.den), p.den)
	wait := late
	over := late.after(span{})
	if p.policy.Algorithm == headgate.LeakyBucket {
		wait = span{from.us - a.now, from.part}
	}
	switch ahead := wait.ceil(); {
	case p.policy.Algorithm == headgate.LeakyBucket && over:
		retry := late.ceil()
		if a.mode == headgate.Book {
			retry = max(retry, ahead-p.maxWait)
		}
		refuse(d, headgate.QueueFull, retry)
		return from
	case p.policy.Algorithm == headgate.TokenBucket && over && a.mode != headgate.Book:
		refuse(d, headgate.OverLimit, ahead)
		return from
	case ahead <= 0:
	case a.mode == headgate.Book && ahead > p.maxWait:
		refuse(d, headgate.WaitTooLong, ahead-p.maxWait)
		return from
	default:
		d.Verdict, d.Reason, d.RetryAfter = headgate.Wait, headgate.Scheduled, micros(ahead)
	}
	return to
}

func refuse(d *headgate.Decision, why headgate.Reason, retry int64) {
	d.Verdict, d.Reason, d.RetryAfter = headgate.Deny, why, micros(retry)
}

// judgeUnits gives verdict and reason of an algorithm that counts units up to a count, and the
// units used afterwards.
func (a *answer) judgeUnits(d *headgate.Decision, used int64) int64 {
	switch {
	case a.cost > a.plan.room:
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
	case used+a.cost > a.plan.room:
		d.Verdict, d.Reason = headgate.Deny, headgate.OverLimit
	default:
		used += a.cost
	}
	d.Remaining = a.plan.room - used
	return used
}

// explainFixed decodes three numbers: how far ahead of now the window is held, the units used
// before, and the version.
func (a *answer) explainFixed(d *headgate.Decision) error {
	held, used := a.told[0], a.told[1]
	if held < 0 || held > a.plan.per || used < 0 || used > a.plan.room || !isVersion(a.told[2]) {
		return wrong("%v for a window of %s", a.told, a.plan.policy.Limit)
	}
	at := a.now + held
	end := at - at%a.plan.per + a.plan.per - a.now
	used = a.judgeUnits(d, used)
	if d.Reason == headgate.OverLimit {
		d.RetryAfter = micros(end)
	}
	if used > 0 {
		d.ResetAfter = micros(end)
	}
	d.At, d.Receipt.From = instant(at), instant(at)
	return nil
}

// explainSliding decodes the numbers of a log or a sliding window: how far ahead of now it is held,
// the units used before, the time until a refused Op passes, the time until nothing is counted, and
// the version. Both times are after the decision.
func (a *answer) explainSliding(d *headgate.Decision) error {
	p := a.plan
	held, used, retry, reset := a.told[0], a.told[1], a.told[2], a.told[3]
	if held < 0 || held > p.per || used < 0 || used > p.room || retry < 0 || retry > farthest ||
		reset < 0 || reset > farthest || !isVersion(a.told[4]) {
		return wrong("%v for a window of %s", a.told, p.policy.Limit)
	}
	at := a.now + held
	a.judgeUnits(d, used)
	d.ResetAfter = micros(reset)
	switch {
	case d.Reason == headgate.OverLimit:
		d.RetryAfter = micros(retry)
	case d.Verdict == headgate.Allow && a.cost > 0 && p.policy.Algorithm == headgate.SlidingLog:
		d.ResetAfter = micros(at + p.per - a.now)
	case d.Verdict == headgate.Allow && a.cost > 0:
		d.ResetAfter = micros(p.freeOf(at) - a.now)
	}
	d.At, d.Receipt.From = instant(at), instant(at)
	return nil
}

// countCeiling is the largest count of a ban, as in limit.
const countCeiling = 1<<53 - 1

// explainBan decodes the beginning of the window (how far ahead of now, never behind), the attempts
// before, and the length of the ban. The ban may come from another version with a smaller count.
func (a *answer) explainBan(d *headgate.Decision) error {
	p := a.plan
	began, attempts, banned := a.told[0], a.told[1], a.told[2]
	if began > 0 || began < -farthest || attempts < 0 || banned < 0 || banned > farthest {
		return wrong("%v for a ban after %s", a.told, p.policy.Limit)
	}
	attempts = min(attempts+a.cost, countCeiling)
	end := max(began+p.per, 0)
	left := max(0, p.room-attempts)
	switch {
	case banned > 0:
		end, left = banned, 0
		refuse(d, headgate.Banned, end)
	case attempts > p.room:
		end = max(began+p.per+p.banFor, 0)
		refuse(d, headgate.Banned, end)
	}
	if attempts > 0 {
		d.ResetAfter = micros(end)
	}
	d.Remaining = left
	d.At = instant(a.now)
	return nil
}

func isVersion(n int64) bool { return n >= 0 && n < versions }
