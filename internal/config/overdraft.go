package config

import (
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

const (
	unlimitedWord = "unlimited"
	// mostOverdraft is in percent. It is far above what keys owe, and below what overflows.
	mostOverdraft = 1_000_000
)

// overdraft reads how much a key may owe for answers that cost more than its limits had left.
func (s *section) overdraft(r *guard.Rule) {
	o := s.outline.field(s.declare("overdraft", field.Taken, "What a key may owe for answers that cost more than was left: unlimited, or "+
		"a percentage of each limit. Its next requests wait until the debt is paid. Default: unlimited with the settle of a body, else "+
		"100%."))
	o.words("", []string{unlimitedWord})
	o.written("", percentPattern)
	v, ok := s.scalar("overdraft", "unlimited or a percentage")
	if !ok {
		return
	}
	part := 0
	switch {
	case v.text() == unlimitedWord:
		r.Overdraft = guard.UnlimitedOverdraft
	case strings.Trim(v.text(), "0123456789%") != "":
		s.fault(v, "must be unlimited or a percentage, not "+quote(v.text()), "write it like 100%, or unlimited")
	default:
		s.percentOf(v, &part, 0, mostOverdraft)
		if r.Overdraft = int64(part); part == 0 {
			r.Overdraft = guard.NoOverdraft
		}
	}
	s.checkOverdraft(r)
}

// checkOverdraft finds an overdraft without effect.
func (s *section) checkOverdraft(r *guard.Rule) {
	if s.blamed(s.pathOf("overdraft")) || s.blamedAny(settleName, "cost") {
		r.Overdraft = 0
		return
	}
	where, _ := s.given("overdraft")
	switch {
	case !r.Settles():
		s.fault(where, "has no effect, because no answer states the cost", "remove it, or write settle: openai")
	case slices.ContainsFunc(r.AllPolicies(), func(p headgate.Policy) bool { return p.CountRejected }):
		s.fault(where, "has no effect with count_rejected: refused requests would be debts too",
			"remove overdraft or count_rejected")
	}
}
