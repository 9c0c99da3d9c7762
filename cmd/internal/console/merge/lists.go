// Package merge makes one document of those of several instances. Its functions are pure: each gets what the instances have answered, in
// any order, and changes nothing of it.
package merge

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/sorting"
)

// Part is what one instance counts.
type Part struct {
	Instance string `json:"instance"`
	N        uint64 `json:"n"`
}

// TopKey is a key with the sum of the refusals of all instances that list it, and with those of each of them, the most first.
type TopKey struct {
	report.TopKey

	By []Part `json:"by"`
}

// Top has the n keys with the most refusals of a fleet. The errors of instances add up. An instance that does not list a key counts 0 for
// it.
type Top struct {
	Since time.Time `json:"since"` // the earliest
	Total uint64    `json:"total"`
	Keys  []TopKey  `json:"keys"`
}

// OfTop merges keys by rule and key.
func OfTop(answers []admin.From[admin.Top], n int) Top {
	type name struct{ rule, key string }
	all, merged := map[name]*TopKey{}, Top{Keys: []TopKey{}}
	for i := range answers {
		a := &answers[i].Answer
		merged.Total += a.Total
		if merged.Since.IsZero() || !a.Since.IsZero() && a.Since.Before(merged.Since) {
			merged.Since = a.Since
		}
		for _, k := range a.Keys {
			at := all[name{k.Rule, k.Key}]
			if at == nil {
				at = &TopKey{TopKey: report.TopKey{Rule: k.Rule, Key: k.Key}}
				all[name{k.Rule, k.Key}] = at
			}
			at.Refusals, at.Error = at.Refusals+k.Refusals, at.Error+k.Error
			at.By = append(at.By, Part{answers[i].Instance, k.Refusals})
		}
	}
	for _, k := range all {
		sorting.Func(k.By, func(a, b Part) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Instance, b.Instance)) })
		merged.Keys = append(merged.Keys, *k)
	}
	sorting.Func(merged.Keys, func(a, b TopKey) int {
		return cmp.Or(cmp.Compare(b.Refusals, a.Refusals), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	merged.Keys = merged.Keys[:min(len(merged.Keys), n)]
	return merged
}

// Ban is a ban with the names of the instances that list it.
type Ban struct {
	guard.BanEntry

	Instances []string `json:"instances"`
}

// Bans are the bans of a fleet, by the end of each.
type Bans struct {
	// Now is the latest time of the instances.
	Now  time.Time `json:"now"`
	Bans []Ban     `json:"bans"`
	// More says that an instance has more bans than it lists.
	More bool `json:"more"`
}

// OfBans merges bans by their ids, which are the same in all instances. Of bans with other ends, which instances with memory of their own
// have, it keeps the last end. A ban that is enforced anywhere is no shadow.
func OfBans(answers []admin.From[admin.Bans]) Bans {
	type name struct{ id, rule, key string } // A caller without administer gets no ids.
	all, merged := map[name]*Ban{}, Bans{Bans: []Ban{}}
	for i := range answers {
		a := &answers[i].Answer
		merged.More = merged.More || a.More
		if a.Now.After(merged.Now) {
			merged.Now = a.Now
		}
		for _, entry := range a.Bans {
			at := all[name{entry.ID, entry.Rule, entry.Key}]
			if at == nil {
				at = &Ban{BanEntry: entry}
				all[name{entry.ID, entry.Rule, entry.Key}] = at
			}
			at.Shadow = at.Shadow && entry.Shadow
			if entry.Until.After(at.Until) {
				at.Until = entry.Until
			}
			if entry.Operator && !at.Operator {
				at.Operator, at.Reason = true, entry.Reason
			}
			at.Instances = append(at.Instances, answers[i].Instance)
		}
	}
	for _, b := range all {
		slices.Sort(b.Instances)
		merged.Bans = append(merged.Bans, *b)
	}
	sorting.Func(merged.Bans, func(a, b Ban) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return merged
}
