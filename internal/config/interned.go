package config

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate/guard"
)

// interned has lists of limits: many customers have the same. Most lists have one entry, which is a key without a text.
type interned struct {
	single  map[guard.QuotaLimit][]guard.QuotaLimit
	several map[string][]guard.QuotaLimit
	// one has lists of one quota, by its name and the first of its limits.
	one  map[oneQuota][]guard.QuotaLimits
	more map[string][]guard.QuotaLimits
}

// oneQuota is a quota with limits that are interned.
type oneQuota struct {
	quota  string
	limits *guard.QuotaLimit
}

func newInterned() interned {
	return interned{
		single: map[guard.QuotaLimit][]guard.QuotaLimit{}, several: map[string][]guard.QuotaLimit{},
		one: map[oneQuota][]guard.QuotaLimits{}, more: map[string][]guard.QuotaLimits{},
	}
}

// limits gives the first list of limits that equals this one.
func (in *interned) limits(all []guard.QuotaLimit) []guard.QuotaLimit {
	if len(all) == 1 {
		return first(in.single, all[0], all)
	}
	return first(in.several, fmt.Sprintf("%#v", all), all) // A Limit leaves its Burst out of %v.
}

// quotas gives the first list of quotas that equals this one; nil for an empty one. The limits are interned.
func (in *interned) quotas(all []guard.QuotaLimits) []guard.QuotaLimits {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return first(in.one, oneQuota{all[0].Quota, &all[0].Limits[0]}, all)
	default:
		return first(in.more, fmt.Sprintf("%#v", all), all)
	}
}

// first gives the list that has the key, which is this one if there is none.
func first[K comparable, V any](known map[K][]V, key K, all []V) []V {
	if list, found := known[key]; found {
		return list
	}
	known[key] = slices.Clip(all)
	return known[key]
}
