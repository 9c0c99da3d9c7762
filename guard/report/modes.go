package report

import (
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// ModeCount is a Count of one mode: Enforce or Shadow.
type ModeCount struct {
	Count

	Mode guard.Mode
}

// mode gives the mode in which a result was decided. A rule may be enforced for some keys, and in shadow for others.
func (v *view) mode(result *guard.Result) guard.Mode {
	if result.Stage != "" {
		if s := v.stage(result.Stage); s != nil {
			return s.rule.Mode
		}
	}
	return result.Rule.Mode
}

func (b *block) counter(mode guard.Mode, v headgate.Verdict, reason headgate.Reason) *atomic.Uint64 {
	n := int(v)*headgate.ReasonCount + int(reason)
	if mode != guard.Enforce {
		n += modeCounts
	}
	return &b.counts[n]
}

// modes divides list by modes.
func (b *block) modes(present guard.Mode, refusals ...headgate.Reason) []ModeCount {
	var all []ModeCount
	for _, c := range b.list(refusals...) {
		for _, mode := range [...]guard.Mode{guard.Enforce, guard.Shadow} {
			n := b.counter(mode, c.Verdict, c.Reason).Load()
			if n > 0 || mode == present && isUsual(c.Verdict, c.Reason, refusals) {
				all = append(all, ModeCount{Count{c.Verdict, c.Reason, n}, mode})
			}
		}
	}
	return all
}
