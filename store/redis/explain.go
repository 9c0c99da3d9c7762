package redis

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// Codes of lua/decide.lua.
const (
	codePasses = iota
	codeScheduled
	codeOver
	codeTooLong
	codeNever
)

// numbersPerOp is how many numbers decide.lua gives for an Op.
const numbersPerOp = 5

// answer is what decide.lua says of one Op. The script gives times and counts;
// what they mean to a caller is worked out here, off the server.
type answer struct {
	code    int64
	now     int64
	numbers []int64
	cost    int64
	// stays tells an Op that passes in a group that does not.
	stays bool
}

// explain puts a reply into the words of the group's Decisions.
func (s *Store) explain(reply []int64, ops []headgate.Op, turns []turn, decisions []headgate.Decision) error {
	if len(reply) != 1+numbersPerOp*len(ops) {
		return fmt.Errorf("redis: decide.lua gave %d numbers for %d Ops: report this as a fault of Headgate", len(reply), len(ops))
	}
	passes := true
	for i := range ops {
		passes = passes && reply[1+i*numbersPerOp] <= codeScheduled
	}
	for i := range ops {
		n := reply[1+i*numbersPerOp:][:numbersPerOp]
		a := answer{code: n[0], now: reply[0], numbers: n[1:], cost: ops[i].Cost}
		a.stays = !passes && a.code <= codeScheduled
		t, d := &turns[i], &decisions[i]
		*d = headgate.Decision{Limit: t.plan.room}
		d.Verdict, d.Reason = verdict(a)
		if t.plan.policy.Algorithm == headgate.SlidingLog {
			t.plan.explainLog(a, d)
		} else {
			t.plan.explainBucket(a, d)
		}
		if !passes || ops[i].Mode == headgate.Peek {
			d.Receipt = headgate.Receipt{}
			continue
		}
		d.Receipt.Nonce, d.Receipt.Place = s.nonce(), t.place.words()
		d.Receipt.Policy, d.Receipt.Cost = ops[i].Policy, ops[i].Cost
	}
	return nil
}

func verdict(a answer) (headgate.Verdict, headgate.Reason) {
	switch {
	case a.code == codeScheduled && !a.stays:
		return headgate.Wait, headgate.Scheduled
	case a.code <= codeScheduled:
		return headgate.Allow, headgate.WithinLimit
	case a.code == codeOver:
		return headgate.Deny, headgate.OverLimit
	case a.code == codeTooLong:
		return headgate.Deny, headgate.WaitTooLong
	default:
		return headgate.Deny, headgate.Never
	}
}

// explainBucket is limit's explainBucket in microseconds.
func (p *plan) explainBucket(a answer, d *headgate.Decision) {
	from := span{a.numbers[0], a.numbers[1]}
	now, edge := span{us: a.now}, span{a.now + p.refill.us, p.refill.part}
	to := from
	if !a.stays && a.code != codeNever {
		to = from.add(p.spanOf(a.cost), p.den)
	}
	late := to.sub(edge, p.den).ceil()
	switch a.code {
	case codeScheduled:
		if !a.stays {
			d.RetryAfter = micros(late)
		}
	case codeOver:
		d.RetryAfter, to = micros(late), from
	case codeTooLong:
		d.RetryAfter, to = micros(late)-p.policy.MaxWait, from
	}
	d.At = headgate.Instant(micros(a.now))
	d.ResetAfter = micros(to.sub(now, p.den).ceil())
	if left := edge.sub(to, p.den); left.us >= 0 && p.num > 0 {
		d.Remaining = p.wholeUnits(left)
	}
	d.Receipt.From, d.Receipt.FromPart = headgate.Instant(micros(from.us)), uint64(from.part)
	d.Receipt.Returned = uint32(a.numbers[2])
}

func (p *plan) explainLog(a answer, d *headgate.Decision) {
	at, used, retry, reset := a.numbers[0], a.numbers[1], a.numbers[2], a.numbers[3]
	d.At = headgate.Instant(micros(at))
	d.Remaining = max(0, p.room-used)
	d.RetryAfter, d.ResetAfter = micros(retry), micros(reset)
	d.Receipt.From = d.At
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
