package guard

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// BansAnswers reports whether the ban of the rule counts answers: those with a status of Count. The decision on a request only
// reads the ban, and Done counts the answer. So requests of a key that are in flight together with the answer that begins the ban
// still reach the service. InFlight, or a limit of After.Count, bounds their number.
func (r *Rule) BansAnswers() bool { return r.Ban.For > 0 && len(r.Count) > 0 }

// stored gives the policy of the window in a store. A Ban refuses above its Count, after the attempt was counted. A ban by answers
// must refuse the request after Count answers.
func (w *window) stored(policy headgate.Policy) headgate.Policy {
	if w.answers && policy.Limit.Count > 1 {
		policy.Limit.Count--
	}
	return policy
}

// answerCost is the cost of one answer under a ban by answers. After one answer, two units exceed the least Count of a Ban.
func answerCost(after headgate.Limit) int64 {
	if after.Count == 1 {
		return 2
	}
	return 1
}

// bansBy reports whether the outcome of a request counts for its ban. An outcome without a status does not: an outage of the
// service must ban no client.
func (r *Rule) bansBy(status int) bool { return slices.Contains(r.Count, status) }

// countAnswer adds the Op that counts an answer for a ban.
func (w *settlement) countAnswer(c *charge, key []byte, status int, local bool) {
	if !c.prepared.bansBy(status) {
		return
	}
	op := headgate.Op{
		Key: string(key), Policy: c.window.id, Window: c.window.number, Group: uint8(len(w.ops)), Cost: answerCost(c.window.limit),
	}
	if local {
		op.Policy, op.Cost = c.window.local, answerCost(c.window.part)
	}
	if c.window.growth != nil {
		w.growing = append(w.growing, growingAnswer{op: op, growth: c.window.growth, prepared: c.prepared, local: local})
		return
	}
	w.ops, w.rules = append(w.ops, op), append(w.rules, charging{window: c.window, prepared: c.prepared, local: local, extra: -1})
}

// growingAnswer is an answer that counts for a ban with Growth.
type growingAnswer struct {
	op       headgate.Op
	growth   *growth
	prepared *prepared
	local    bool
}

// count counts the answer. After an error, it may not count.
func (a *growingAnswer) count(ctx context.Context, store headgate.Store) {
	if d, err := a.growth.count(ctx, store, a.prepared, a.op, a.local); err == nil {
		a.prepared.meetBan(a.op.Key, &d)
	}
}

// meetBan remembers a ban that an answer has begun, so that Bans lists it before its client returns.
func (p *prepared) meetBan(key string, d *headgate.Decision) {
	if d.Reason != headgate.Banned {
		return
	}
	until, hash, shadow := d.At.Add(d.RetryAfter), maphash.String(p.state.seed, key), p.Mode != Enforce
	if p.state.bans.known(hash, until, shadow) {
		return
	}
	own := key[len(p.space):]
	met := &ban{rule: p.Name, text: string(rule.PlainKeyNames().AppendKey([]byte(p.Name+" "), own)), key: own}
	met.update(until, shadow)
	p.state.bans.meet(hash, d.At, met, false)
}
