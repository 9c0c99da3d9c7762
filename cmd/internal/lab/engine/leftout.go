package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/store/memory"
)

// runnable returns the part of a configuration that an engine decides, and names the rest.
func runnable(c *config.Config, o *Options) (own *config.Config, leftOut []string) {
	own = c.InMemory()
	note := func(format string, args ...any) { leftOut = append(leftOut, fmt.Sprintf(format, args...)) }
	if c.Shared != nil {
		note("store %s: its rules count in memory, without prefetch, and it never fails, so that no fallback decides", c.Shared)
	}
	if c.Source != nil {
		note("source: the rules, plans and customers of the file decide")
	}
	if own.Identity.RegionDB != "" {
		own.Identity.RegionDB = ""
		note("identity.region_db: a request has the region that is given with it")
	}
	if own.Identity.JWT.Keys != "" {
		own.Identity.JWT.Keys = ""
		note("identity.jwt: a request has the claims that are given with it")
	}
	if own.Throttle != nil && o.WithoutDurations {
		own.Throttle = nil
		note("throttle: it needs the durations of requests")
	}
	own.Rules = slices.DeleteFunc(own.Rules, func(r guard.Rule) bool {
		if r.Lease.Resource != "" {
			note("rule %q: it spends a lease, which a server gives%s", r.Name, inGroup(&r))
		}
		return r.Lease.Resource != ""
	})
	if o.WithoutDurations {
		own.Rules = withoutInFlight(own.Rules, note)
	}
	if o.MaxMemory > 0 {
		own.MaxMemory = o.MaxMemory
	}
	return own, leftOut
}

// withoutInFlight leaves in_flight out, and rules that have nothing else.
func withoutInFlight(rules []guard.Rule, note func(string, ...any)) (kept []guard.Rule) {
	for i := range rules {
		r := rules[i]
		if r.InFlight == 0 {
			kept = append(kept, r)
			continue
		}
		if r.InFlight = 0; len(r.Policies) == 0 && r.Quota == "" && !r.LimitsFrom.Most.Limit.HasPeriod() {
			note("rule %q: in_flight needs the durations of requests%s", r.Name, inGroup(&r))
			continue
		}
		note("in_flight of rule %q: it needs the durations of requests", r.Name)
		kept = append(kept, r)
	}
	return kept
}

func inGroup(r *guard.Rule) string {
	if r.Group == "" {
		return ""
	}
	return fmt.Sprintf("; the other rules of group %q decide in its place", r.Group)
}

// memoryFor returns the memory in which a number of keys of each rule keep their counters, blocks of any size in it.
func memoryFor(c *config.Config, settings memory.Config, keys int64) int64 {
	var places, blocks int64
	for _, n := range c.Needs() {
		windows := n.TableBytes / check.PlaceBytes
		places += keys * windows * 100 / memory.KeptPercent(int(windows))
		blocks += keys * n.BlockBytes
	}
	// A few keys must never meet in one neighbourhood of the table, and blocks are lent in powers of two.
	table := max(places*2*check.PlaceBytes, 1<<20)
	if settings.BlockShare <= 0 {
		return table
	}
	share := int64(settings.BlockShare)
	return max(table*100/(100-share), (blocks*5/4+1<<16)*100/share)
}

// Text joins what was left out, one line each, behind a prefix; "" if all was decided.
func Text(leftOut []string, prefix string) string {
	var b strings.Builder
	for _, line := range leftOut {
		b.WriteString(prefix + line + "\n")
	}
	return b.String()
}
