package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Bounds of the growth of bans.
const (
	// MostGrowth bounds Ban.Growth.
	MostGrowth = 100
	// markOfGrowth begins the key that has the earlier bans of a key, behind the namespace. Keys of rules, domains and customers
	// begin otherwise: see markerOfAll.
	markOfGrowth = "\xf2"
	// apartGrowth is the first number of the windows with the bans that a Switch counts apart. A ban has fewer lengths.
	apartGrowth = 128
)

// Lengths lists the lengths of the bans of one key, in their order. The last one repeats. A ban without Growth has one.
func (b *Ban) Lengths() []time.Duration {
	all := []time.Duration{b.For}
	for b.Growth > 1 && all[len(all)-1] < b.Most {
		last := all[len(all)-1]
		if last > b.Most/time.Duration(b.Growth) {
			return append(all, b.Most)
		}
		all = append(all, last*time.Duration(b.Growth))
	}
	return all
}

// Policies lists the policies of a ban with this After: one for each length, and with Growth one that remembers each of them.
func (b *Ban) Policies(after headgate.Limit) []headgate.Policy {
	var bans, noted []headgate.Policy
	for _, length := range b.Lengths() {
		bans = append(bans, headgate.Policy{Algorithm: headgate.Ban, Limit: after, BanFor: length})
		if b.Growth > 0 {
			noted = append(noted, b.noted(after, length))
		}
	}
	return append(bans, noted...)
}

// noted gives the policy of the window that remembers a ban: banned from the answer that begins the ban until Forget after the latest
// end of the ban.
func (b *Ban) noted(after headgate.Limit, length time.Duration) headgate.Policy {
	return headgate.Policy{
		Algorithm: headgate.Ban, Limit: headgate.Limit{Per: banPeriod}, BanFor: min(after.Per+length+b.Forget, limit.MaxPer) - banPeriod,
	}
}

// checkGrowth finds a growth that cannot be, or without an effect.
func (r *Rule) checkGrowth() error {
	b := &r.Ban
	switch {
	case b.Growth == 0 && (b.Most != 0 || b.Forget != 0):
		return errors.New("its ban has a Most or a Forget, which have no effect without Growth: leave them out")
	case b.Growth == 0:
		return nil
	case b.Growth < 2 || b.Growth > MostGrowth:
		return fmt.Errorf("the Growth of its ban is %d: use 2 to %d", b.Growth, MostGrowth)
	case !r.BansAnswers():
		return errors.New("its ban grows and counts attempts, whose decision begins the ban before its length is known: set Count")
	case b.Most <= b.For || b.Forget <= 0:
		return fmt.Errorf("its ban grows from %v to %v and is forgotten after %v: use a Most above For, and a Forget",
			b.For, b.Most, b.Forget)
	}
	return nil
}

// growth has the lengths of the bans of one window. The store remembers the bans of a key in windows of another key, one for each
// length: the window is banned until the ban with this length is forgotten. So the highest banned window says how long the next ban is,
// to note a ban twice changes nothing, and a flood of keys evicts none of them.
type growth struct {
	steps []growthStep
	first uint8 // the number of the first window
}

// growthStep is one length. ban is the policy of the ban, and noted that of the window that remembers it; local are those of Local.
type growthStep struct{ ban, noted, local, localNoted headgate.PolicyID }

func (s *growthStep) in(local bool) (ban, noted headgate.PolicyID) {
	if local {
		return s.local, s.localNoted
	}
	return s.ban, s.noted
}

// addGrowth prepares the lengths of a ban with Growth, whose policy is that of w.
func (s *counters) addGrowth(w *window, policy headgate.Policy) error {
	b := &s.rule.Ban
	if b.Growth == 0 {
		return nil
	}
	g := &growth{}
	if s.rule.bansApart() {
		g.first = apartGrowth
	}
	for _, length := range b.Lengths() {
		policy.BanFor = length
		noted := b.noted(policy.Limit, length)
		var step growthStep
		var err error
		step.ban, step.noted, err = s.prepareGrowth(s.guard.store, w.stored(policy), noted)
		if err == nil && s.rule.Fallback == FallbackLocal {
			part := policy
			part.Limit = w.part
			step.local, step.localNoted, err = s.prepareGrowth(s.config.Local, w.stored(part), noted)
		}
		if err != nil {
			return fmt.Errorf("its ban of %v: %w", length, err)
		}
		g.steps = append(g.steps, step)
	}
	w.growth = g
	return nil
}

func (s *counters) prepareGrowth(store headgate.Store, ban, noted headgate.Policy) (banID, notedID headgate.PolicyID, err error) {
	if banID, err = s.claims.prepare(store, ban); err == nil {
		notedID, err = s.claims.prepare(store, noted)
	}
	return banID, notedID, err
}

// growthKey gives the key that has the earlier bans of a key.
func (p *prepared) growthKey(key string) string {
	return string(p.space) + markOfGrowth + key[len(p.space):]
}

// earlier reads how many bans of a key are remembered, at most one for each length.
func (g *growth) earlier(ctx context.Context, store headgate.Store, key string, local bool) (n int, err error) {
	ops, decided := make([]headgate.Op, len(g.steps)), make([]headgate.Decision, len(g.steps))
	for i := range ops {
		_, noted := g.steps[i].in(local)
		ops[i] = headgate.Op{Key: key, Policy: noted, Window: g.first + uint8(i), Kind: headgate.Peek}
	}
	if err := store.Apply(ctx, ops, decided); err != nil {
		return 0, err //nolint:wrapcheck // because the caller says what failed.
	}
	for i := range decided {
		if decided[i].Reason == headgate.Banned {
			n = i + 1
		}
	}
	return n, nil
}

// count counts an answer under the ban of the length that follows the earlier bans of the key. The earlier bans are read before the
// ban: a ban that another answer begins in between has the same length, and is noted in the same window. Each step is a call of its
// own, because a store may decide the Ops of one call in any order.
func (g *growth) count(
	ctx context.Context, store headgate.Store, p *prepared, op headgate.Op, local bool,
) (d headgate.Decision, err error) {
	key := p.growthKey(op.Key)
	earlier, err := g.earlier(ctx, store, key, local)
	if err != nil {
		return d, err
	}
	next := min(earlier, len(g.steps)-1)
	ban, noted := g.steps[next].in(local)
	look := op
	look.Policy, look.Kind, look.Cost = ban, headgate.Peek, 0
	if d, err = applyOne(ctx, store, look); err != nil || d.Reason == headgate.Banned {
		return d, err
	}
	op.Policy = ban
	if d, err = applyOne(ctx, store, op); err != nil || d.Reason != headgate.Banned {
		return d, err
	}
	note := headgate.Op{Key: key, Policy: noted, Window: g.first + uint8(next), Cost: 1}
	if next < earlier { // The longest ban follows itself. An attempt during a ban would not make it longer.
		err = store.Forget(ctx, []headgate.Op{note})
	}
	if err == nil {
		_, err = applyOne(ctx, store, note)
	}
	return d, err
}

// applyOne decides one Op.
func applyOne(ctx context.Context, store headgate.Store, op headgate.Op) (headgate.Decision, error) {
	op.Group = 0
	var d [1]headgate.Decision
	err := store.Apply(ctx, []headgate.Op{op}, d[:])
	return d[0], err //nolint:wrapcheck // because the caller says what failed.
}

// forget makes the store forget the earlier bans of a key.
func (g *growth) forget(ctx context.Context, store headgate.Store, key string) error {
	ops := make([]headgate.Op, len(g.steps))
	for i := range ops {
		ops[i] = headgate.Op{Key: key, Window: g.first + uint8(i)}
	}
	return store.Forget(ctx, ops) //nolint:wrapcheck // because the caller says what failed.
}
