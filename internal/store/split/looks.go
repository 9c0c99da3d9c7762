package split

import (
	"context"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
)

// countLooks is the second round of the groups of TakeIfAll with Ops in both stores. decisions has
// the results of the first round. All Ops of a group that has passed take their units. Of a
// refused group, the refused Ops count, if their policies count refused attempts.
func (s *Store) countLooks(ctx context.Context, c *call, decisions []headgate.Decision) error {
	var ops []headgate.Op
	var places []int
	passed := map[int]bool{} // by place
	for group, g := range c.mixed {
		if !g.looks || slices.Contains(decisions[g.from:g.to], headgate.Undecided()) {
			continue
		}
		which, passes := compensate.Counting(c.settings(g), decisions[g.from:g.to])
		for _, i := range which {
			op := c.ops[g.from+i]
			op.Kind, op.Group = headgate.TakeIfAll, uint8(group%2)
			ops, places = append(ops, op), append(places, g.from+i)
			passed[g.from+i] = passes
		}
	}
	if len(ops) == 0 {
		return nil
	}
	second, answers := s.newCall(), make([]headgate.Decision, len(ops))
	defer s.end(second)
	if err := second.divide(s, ops, nil, false); err != nil {
		return err
	}
	err := s.send(ctx, second, answers)
	if err != nil && !compensate.IsOutside(err) {
		return err
	}
	for i, place := range places {
		// The refusal of the first round stands, although an Op may pass alone by now.
		if passed[place] || answers[i].Verdict == headgate.Deny {
			decisions[place] = answers[i]
		}
	}
	for _, g := range c.mixed { // A window may have ended since the first round.
		if all := decisions[g.from:g.to]; err != nil && slices.Contains(all, headgate.Undecided()) {
			compensate.Undecide(all)
		}
	}
	return err
}
