package guard

import (
	"context"
	"fmt"
	"runtime"

	"github.com/headgate/headgate"
)

// FollowBans looks in the store for bans that other instances made with Ban. A program whose instances share a store calls
// it each second. It costs one Peek while no key of the store is banned by an operator, and otherwise one more
// for each rule and domain.
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
	w, err := g.operatorWindow()
	if err != nil {
		return err
	}
	space := string(namespaced(s.config.Namespace))
	_, some, err := attempt(ctx, g.store, space+markerOfAll, w.id, headgate.Peek, 0)
	if err != nil {
		return fmt.Errorf("guard: bans of other instances are not known: %w", err)
	}
	if !some {
		return nil // Watches end with the decisions that they are for.
	}
	ops, decisions := make([]headgate.Op, 0, maxTogether), make([]headgate.Decision, maxTogether)
	for from := 0; from < len(watches); from += len(ops) {
		ops = ops[:0]
		for i := from; i < min(from+maxTogether, len(watches)); i++ {
			ops = append(ops, headgate.Op{
				Key: space + watches[i].marker, Policy: w.id, Window: banWindow, Kind: headgate.Peek, Group: uint8(i),
			})
		}
		if err := g.store.Apply(ctx, ops, decisions); err != nil {
			return fmt.Errorf("guard: bans of other instances are not known: %w", err)
		}
		for i := range ops {
			if d := &decisions[i]; d.Reason == headgate.Banned {
				watches[from+i].extend(d.At.Add(d.RetryAfter))
			}
		}
	}
	return nil
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
