package script

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// explainBucket does the steps of judgeBucket and explainBucket of package limit, in microseconds. The
// reply has the bucket's time ahead of now (microseconds and their part) and the version.
func (a *answer) explainBucket(d *headgate.Decision) error {
	p := a.plan
	from := span{us: a.now}
	if !p.blocks {
		from.us += a.numbers[0]
		if p.interval.part > 0 {
			from.part = a.numbers[1]
		}
		// The time may exceed the policy's horizon, because another policy of the family may have booked it.
		ahead := from.us - a.now
		if ahead < 0 || ahead > farthestBucket || from.part < 0 || from.part >= p.den || !a.isLast(a.numbers[p.width-1]) {
			return wrong("%v for a bucket of %s", a.numbers, p.policy.Limit)
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

// judgeBucket sets Verdict, Reason and RetryAfter, and gives the bucket's time afterwards.
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
		refuse(d, headgate.QueueFull, a.queueRetry(late.ceil(), ahead))
		return from
	case p.policy.Algorithm == headgate.TokenBucket && over && a.kind != headgate.Book:
		refuse(d, headgate.OverLimit, ahead)
		return from
	case ahead <= 0:
	case a.kind == headgate.TakeNow:
		refuse(d, headgate.OverLimit, ahead)
		return from
	case a.kind == headgate.Book && ahead > p.maxWait:
		refuse(d, headgate.WaitTooLong, ahead-p.maxWait)
		return from
	default:
		d.Verdict, d.Reason, d.RetryAfter = headgate.Wait, headgate.Scheduled, micros(ahead)
	}
	return to
}

// queueRetry gives the time until the queue has capacity: the departure of a booking must also be within
// the policy's MaxWait, and TakeNow departs at once.
func (a *answer) queueRetry(late, ahead int64) int64 {
	switch a.kind {
	case headgate.Book:
		return max(late, ahead-a.plan.maxWait)
	case headgate.TakeNow:
		return max(late, ahead)
	default:
		return late
	}
}

func refuse(d *headgate.Decision, why headgate.Reason, retry int64) {
	d.Verdict, d.Reason, d.RetryAfter = headgate.Deny, why, micros(retry)
}

// judgeUnits sets Verdict, Reason and Remaining for an algorithm that compares used units with a
// count. It gives the used units afterwards.
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

// mostUsed is an upper bound of the used units in a reply. Only under CountAll and with an overdraft they can exceed Count.
func (p *Plan) mostUsed() int64 {
	if p.policy.CountAll || p.owe > 0 && !p.calendar() {
		return headgate.MaxUnits
	}
	return p.room
}

// explainFixed decodes three numbers: the time of the decision ahead of now (after the clock stepped
// back), the units used before, and the version.
func (a *answer) explainFixed(d *headgate.Decision) error {
	held, used := a.numbers[0], a.numbers[1]
	if held < 0 || held > a.plan.per || used < 0 || used > a.plan.mostUsed() || !a.isLast(a.numbers[2]) {
		return wrong("%v for a window of %s", a.numbers, a.plan.policy.Limit)
	}
	at := a.now + held
	end := at - at%a.plan.per + a.plan.per - a.now
	a.explainCount(d, used, micros(end))
	if windows := limit.WindowsOfDebt(a.plan.room, a.plan.owe, used, a.cost); d.Reason == headgate.OverLimit {
		d.RetryAfter += micros(windows * a.plan.per)
	}
	if d.ResetAfter > 0 {
		d.ResetAfter += micros(limit.WindowsOfDebt(a.plan.room, a.plan.owe, used, a.plan.room) * a.plan.per)
	}
	d.At, d.Receipt.From = instant(at), instant(at)
	return nil
}

// explainSliding decodes the five numbers of a log or a sliding window. The first two are the time of
// the decision ahead of now, and the units used before. The next two are the time until a refused Op
// passes and the time until all units expire, both after the decision. The last is the version.
func (a *answer) explainSliding(d *headgate.Decision) error {
	p := a.plan
	held, used, retry, reset := a.numbers[0], a.numbers[1], a.numbers[2], a.numbers[3]
	if held < 0 || held > p.per || used < 0 || used > p.room || retry < 0 || retry > farthest ||
		reset < 0 || reset > farthest || !a.isLast(a.numbers[4]) {
		return wrong("%v for a window of %s", a.numbers, p.policy.Limit)
	}
	at := a.now + held
	a.judgeUnits(d, used)
	d.ResetAfter = micros(reset)
	switch {
	case d.Reason == headgate.OverLimit:
		d.RetryAfter = micros(retry)
	case d.Verdict == headgate.Allow && a.cost > 0:
		d.ResetAfter = micros(p.leavesAt(at) - a.now)
	}
	d.At, d.Receipt.From = instant(at), instant(at)
	return nil
}

// countCeiling is the largest number of attempts of a ban, as in package limit.
const countCeiling = 1<<53 - 1

// explainBan decodes three numbers: the start of the window relative to now, which is never positive,
// the attempts before, and the remaining time of a ban. The ban may come from another policy with a
// smaller count.
func (a *answer) explainBan(d *headgate.Decision) error {
	p := a.plan
	began, attempts, banned := a.numbers[0], a.numbers[1], a.numbers[2]
	if began > 0 || began < -farthest || attempts < 0 || banned < 0 || banned > farthest {
		return wrong("%v for a ban after %s", a.numbers, p.policy.Limit)
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
