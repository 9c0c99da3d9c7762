package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/limit/twin"
)

// state names the state that one Op counts in.
type state struct {
	key    string
	window uint8
}

// model is a store made of twins: the contract in slow and simple code.
type model struct {
	policies map[headgate.PolicyID]headgate.Policy
	keys     map[state]twin.Key
}

func (m *model) key(op headgate.Op) twin.Key {
	s := state{op.Key, op.Window}
	if m.keys[s] == nil {
		m.keys[s] = twin.New(m.policies[op.Policy])
	}
	return m.keys[s]
}

// group decides the Ops of one group.
func (m *model) group(now headgate.Instant, ops []headgate.Op) []twin.Answer {
	answers := make([]twin.Answer, len(ops))
	if ops[0].Kind == headgate.Refund { // A group of its own.
		answers[0] = m.key(ops[0]).Do(now, ops[0].Cost, headgate.Refund)
		return answers
	}
	passes, countable := true, true
	for i, op := range ops {
		mode := headgate.Peek
		answers[i] = m.key(op).Do(now, op.Cost, mode)
		passes = passes && answers[i].Verdict != headgate.Deny
		countable = countable && answers[i].Reason != headgate.Never
	}
	for i, op := range ops {
		p := m.policies[op.Policy]
		counts := op.Kind != headgate.Peek && (p.CountRejected && countable || p.CountAll || p.Algorithm == headgate.Ban)
		switch {
		case passes:
			answers[i] = m.key(op).Do(now, op.Cost, op.Kind)
		case answers[i].Verdict == headgate.Deny && counts:
			answers[i] = m.key(op).Do(now, op.Cost, op.Kind)
		case answers[i].Verdict != headgate.Deny:
			// The Op passed and was not taken: Remaining is what is left then.
			if counts && op.Kind != headgate.TakeIfAll {
				m.key(op).Count(now, op.Cost)
			}
			without := m.key(op).Do(now, 0, headgate.Peek)
			answers[i].Remaining, answers[i].Reset = without.Remaining, without.Reset
		}
	}
	return answers
}

// testTraces runs random traffic of several keys, windows, groups and kinds.
func (s *suite) testTraces(t *testing.T) {
	for _, set := range s.ruleSets() {
		t.Run(set.name, func(t *testing.T) {
			for seed := range uint64(min(max(s.rounds/200, 1), 8)) {
				s.playTrace(t, set.policies, seed)
			}
		})
	}
}

type ruleSet struct {
	name     string
	policies []headgate.Policy
}

// ruleSets gives each algorithm alone, in several windows, and all algorithms mixed.
func (s *suite) ruleSets() []ruleSet {
	var sets []ruleSet
	var mixed []headgate.Policy
	for _, p := range s.offered(headgate.Limit{Count: 5, Per: time.Second}) {
		name := p.Algorithm.String()
		sets = append(sets, ruleSet{name, []headgate.Policy{p}})
		long, odd := p, p
		long.Limit = headgate.Limit{Count: 20, Per: 10 * time.Second}
		odd.Limit = headgate.Limit{Count: 7, Per: 3 * time.Second}
		sets = append(sets, ruleSet{name + " in three windows", []headgate.Policy{p, long, odd}})
		if p.Algorithm >= headgate.FixedWindow {
			counted := p
			counted.CountRejected = true
			sets = append(sets, ruleSet{name + " counting refused attempts", []headgate.Policy{counted, long}})
			if p.Algorithm == headgate.FixedWindow {
				all, plain := counted, odd
				all.CountAll, plain.CountRejected = true, true
				sets = append(sets, ruleSet{name + " counting all attempts", []headgate.Policy{all, plain, long}})
			}
		}
		mixed = append(mixed, odd)
	}
	sets = append(sets, ruleSet{"all algorithms in one rule", mixed})
	if !s.without[headgate.Ban] {
		ban := policy(headgate.Ban, headgate.Limit{Count: 6, Per: 2 * time.Second})
		sets = append(sets, ruleSet{"a ban", []headgate.Policy{ban}}, ruleSet{"all algorithms and a ban in one rule", append(mixed, ban)})
	}
	return sets
}

func (s *suite) playTrace(t *testing.T, policies []headgate.Policy, seed uint64) {
	t.Helper()
	b, r := s.bench(t), rand.New(rand.NewPCG(seed, 7))
	m := &model{policies: map[headgate.PolicyID]headgate.Policy{}, keys: map[state]twin.Key{}}
	var ids []headgate.PolicyID
	for _, p := range policies {
		id := b.prepare(p)
		ids, m.policies[id] = append(ids, id), p
	}
	for step := range 120 {
		b.clock.Advance(microseconds(r))
		var ops []headgate.Op
		mode := []headgate.OpKind{headgate.Peek, headgate.TakeIfAll, headgate.TakeIfAll, headgate.Refund}[r.IntN(4)]
		if r.IntN(2) == 0 {
			mode = headgate.Take
		}
		cost := []int64{1, 1, 1, 2, 0, 6}[r.IntN(6)]
		for k := range 1 + r.IntN(2) { // One rule, or two rules in one group.
			key := fmt.Sprintf("key-%d", 2*k+r.IntN(2))
			for w, id := range ids {
				ops = append(ops, headgate.Op{Key: key, Policy: id, Window: uint8(w), Cost: cost, Kind: mode})
			}
		}
		if mode == headgate.Refund {
			op := ops[r.IntN(len(ops))]
			if !limit.Accepts(m.policies[op.Policy].Algorithm, mode) {
				continue
			}
			ops = []headgate.Op{op}
		}
		got, want := b.apply(ops...), m.group(b.clock.Now(), ops)
		for i := range got {
			where := fmt.Sprintf("seed %d, step %d, op %+v of %d", seed, step, ops[i], len(ops))
			if s.forgiven(got, i) {
				want[i].Reset = got[i].ResetAfter
			}
			compare(t, where, m.policies[ops[i].Policy], got[i], want[i])
		}
	}
}

// microseconds gives a pause: none, a short one, an interval or a period.
func microseconds(r *rand.Rand) time.Duration {
	switch r.IntN(5) {
	case 0, 1:
		return 0
	case 2:
		return time.Duration(r.IntN(1000)) * time.Microsecond
	case 3:
		return 200 * time.Millisecond
	default:
		return time.Duration(r.IntN(1_500_000)) * time.Microsecond
	}
}

func compare(t *testing.T, where string, p headgate.Policy, got headgate.Decision, want twin.Answer) {
	t.Helper()
	if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Remaining != want.Remaining {
		t.Fatalf("%s under %+v:\n got %v %v remaining %d\nwant %v %v remaining %d",
			where, p, got.Verdict, got.Reason, got.Remaining, want.Verdict, want.Reason, want.Remaining)
	}
	if p.Algorithm > headgate.LeakyBucket && p.Algorithm != headgate.Ban {
		return
	}
	// A store that counts in microseconds rounds up to the next one.
	if late(got.RetryAfter, want.Retry) || late(got.ResetAfter, want.Reset) {
		t.Fatalf("%s under %+v:\n got retry %v reset %v\nwant retry %v reset %v",
			where, p, got.RetryAfter, got.ResetAfter, want.Retry, want.Reset)
	}
}

func late(got, want time.Duration) bool { return got < want || got-want >= time.Microsecond }
