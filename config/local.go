package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/limit"
)

// checkLocal finds what cannot be counted by this instance alone while the shared
// store is away. all are the limits of the rule, and of each of its overrides.
func (s *section) checkLocal(r *guard.Rule, all []limits) {
	share := s.counting.localShare
	if r.Fallback != guard.FallbackLocal || share == 0 || s.counting.shared == nil {
		return
	}
	s.eachPolicy(r, all, func(p headgate.Policy, at value) bool {
		part, err := guard.LocalPolicy(p, share)
		if err == nil {
			_, err = limit.Compile(part)
		}
		if err == nil {
			return true
		}
		problem, fix := err.Error(), "raise local_share, or use fallback: deny"
		if little, found := errors.AsType[*guard.ShareError](err); found {
			problem = fmt.Sprintf("%d%% of %s, which this instance counts by itself with fallback local, is less than one request",
				share, limitText(headgate.Policy{Limit: little.Limit}))
			fix = fmt.Sprintf("raise local_share to %d%%, or use fallback: deny", little.Least)
		} else if bad, found := errors.AsType[*limit.PolicyError](err); found {
			problem = fmt.Sprintf("%d%% of %s, which this instance counts by itself with fallback local: %s %s",
				share, limitText(p), bad.Field, bad.Problem)
		}
		s.fault(at, problem, fix)
		return false
	})
}

// eachPolicy gives each policy that a key of the rule is counted against, and where it
// is written, until yield reports false. Of the bans, which overrides have too, it
// gives the one beside the rule's own limits, and those that differ.
func (s *section) eachPolicy(r *guard.Rule, all []limits, yield func(p headgate.Policy, at value) bool) {
	bans := map[headgate.Policy]bool{}
	for _, l := range all {
		for i, p := range l.policies {
			if !s.blamed(l.values[i].path) && !yield(p, l.values[i]) {
				return
			}
		}
		if r.Ban.For == 0 || len(l.policies) == 0 || s.blamed(s.pathOf("ban")) {
			continue
		}
		if ban := banPolicy(r, l.policies); !bans[ban] {
			bans[ban] = true
			if !yield(ban, s.find(s.pathOf("ban.after"))) {
				return
			}
		}
	}
	if r.Exceed.Hard.Limit.Per > 0 && !s.blamed(s.pathOf("on_exceed")) {
		yield(r.Exceed.Hard, s.find(s.pathOf("on_exceed.hard")))
	}
}

// checkFallbacks finds local fallbacks without a share or without need, and a share
// without them.
func (s *section) checkFallbacks(c *Config) {
	where, used := s.fallsBackToLocal(c)
	if used && s.counting.known && c.Shared == nil {
		s.fault(where, "local is not used by store memory, which is local already", "use allow or deny, or a shared store")
		return
	}
	share, given := s.given("local_share")
	switch {
	case s.blamed("local_share"):
	case used && !given:
		s.fault(where, "local has no local_share",
			"write local_share: 25% at the top level, for this instance's part of each limit: 100% divided by the number of instances")
	case given && !used && !slices.ContainsFunc(s.faults, func(f Fault) bool { return strings.HasSuffix(f.Path, "fallback") }):
		s.fault(share, "is not used without fallback local", "leave it out, or write fallback: local")
	}
}

// fallsBackToLocal gives the first place that says so.
func (s *section) fallsBackToLocal(c *Config) (where value, used bool) {
	if v, ok := s.written("fallback"); ok && c.Fallback == guard.FallbackLocal {
		return v, true
	}
	for i := range c.Rules {
		if c.Rules[i].Fallback == guard.FallbackLocal {
			return s.find(fmt.Sprintf("rules[%d].fallback", i)), true
		}
	}
	return value{}, false
}
