package guard

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/headgate/headgate"
)

// FollowBans looks in the store for bans that other instances made with Ban. A program whose instances share a store calls
// it each second. It reads and writes one key while no key of the store is banned by an operator, and otherwise one more for each
// rule and domain. A store that cannot write fails it, as it fails decisions.
func (g *Guard) FollowBans(ctx context.Context) error {
	s := g.now()
	if s == nil {
		return headgate.ErrNotMade
	}
	defer runtime.KeepAlive(s)
	watches := s.watches()
	if len(watches) == 0 {
		return nil
	}
	w, err := g.operatorLimits()
	if err != nil {
		return err
	}
	space := string(namespaced(s.config.Namespace))
	if some, err := w.follow(ctx, g.store, space, []*watch{{marker: markerOfAll}}); err != nil || !some {
		return err // Watches end with the decisions that they are for.
	}
	for some := range slices.Chunk(watches, maxTogether/2) {
		if _, err := w.follow(ctx, g.store, space, some); err != nil {
			return err
		}
	}
	return nil
}

// follow reads the markers of some watches, and reports whether one is banned. It writes to each of them.
func (w *operatorLimits) follow(ctx context.Context, store headgate.Store, space string, all []*watch) (some bool, err error) {
	ops := make([]headgate.Op, 0, 2*len(all))
	for i, one := range all {
		key := space + one.marker
		ops = append(ops,
			headgate.Op{Key: key, Policy: w.id, Window: banWindow, Kind: headgate.Peek, Group: uint8(i)},
			headgate.Op{Key: key, Policy: w.written, Cost: 1, Group: uint8(i)})
	}
	decisions := make([]headgate.Decision, len(ops))
	if err := store.Apply(ctx, ops, decisions); err != nil {
		return false, fmt.Errorf("guard: bans of other instances are not known: %w", err)
	}
	for i, one := range all {
		if d := &decisions[2*i]; d.Reason == headgate.Banned {
			one.extend(d.At.Add(d.RetryAfter))
			some = true
		}
	}
	return some, nil
}

// watches lists what may have bans by operators.
func (s *set) watches() (all []*watch) {
	seen := map[*watch]bool{}
	add := func(p *prepared) {
		if o := p.operator; o != nil && !seen[o.watch] {
			seen[o.watch] = true
			all = append(all, o.watch)
		}
	}
	for i := range s.rules {
		add(&s.rules[i])
	}
	for _, t := range s.trees {
		for i := range t.leaves {
			add(&t.leaves[i].counts)
		}
	}
	return all
}
