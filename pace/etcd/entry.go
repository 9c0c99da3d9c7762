package etcd

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Balance is how a limit is divided among the instances.
type Balance string

const (
	// Even gives each instance the same part. An empty Balance means Even.
	Even Balance = "even"
	// retired is the former balance by demand. A stored limit with it is used as Even.
	retired Balance = "demand"
)

// NoDemand says that balance "demand" does not exist any more, and what to use in its place.
const NoDemand = `balance "demand" no longer exists: use even, or lease the limit to instances by their demand: ` +
	`add the resource to lease.resources of headgate server, and use package client/lease in place of pace/etcd`

// Limit is the limit of a provider for all instances together.
type Limit struct {
	Count   int64         // units a window; 0 admits nothing
	Per     time.Duration // a window's length
	Balance Balance
}

// Member is a live instance.
type Member struct {
	ID     string
	Index  int       // in the plan, from 0; -1 when the plan does not have it yet
	Demand int64     // the demand in its last whole window, in units
	Seen   time.Time // the time of its last report, by its own wall clock
}

// PlanInfo is the latest plan.
type PlanInfo struct {
	Limit     int64
	Per       time.Duration
	Instances int
	From      time.Time // the edge of a window from which the plan is valid
	Revision  int64     // etcd's revision of its key
}

// BrakeInfo is the current brake for all instances.
type BrakeInfo struct {
	Until      time.Time
	Percent    int
	Reason, By string
}

// Entry is the data of a provider in etcd.
type Entry struct {
	Provider string
	Limit    Limit
	Revision int64 // of the limit, for [Limits.Set]; 0 without a limit
	Plan     *PlanInfo
	Members  []Member // by ID
	Brake    *BrakeInfo
	// Faults are the invalid values, which the instances ignore.
	Faults []string
}

// empty reports that there is no data.
func (e *Entry) empty() bool {
	return e.Revision == 0 && e.Plan == nil && len(e.Members) == 0 && e.Brake == nil && len(e.Faults) == 0
}

// entry gives the data of a view, for operators.
func (v *view) entry(provider string) Entry {
	e := Entry{Provider: provider, Revision: v.limit.mod, Brake: v.brake.brake}
	if v.limit.err == nil {
		e.Limit = v.limit.limit
	}
	index := map[string]int{}
	if p := v.plan.plan; p != nil {
		e.Plan = &PlanInfo{Limit: p.limit, Per: p.per, Instances: len(p.members), From: p.from.Time(), Revision: v.plan.mark.mod}
		for i, id := range p.members {
			index[id] = i
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.members.all)) {
		m := v.members.all[id]
		at, planned := index[id]
		if !planned {
			at = -1
		}
		e.Members = append(e.Members, Member{ID: id, Index: at, Demand: m.demand, Seen: m.at.Time()})
	}
	faults := v.faults()
	for _, key := range slices.Sorted(maps.Keys(faults)) {
		e.Faults = append(e.Faults, faults[key].Error())
	}
	return e
}

var (
	// ErrNotFound says that a provider has no limit, no instance and no plan.
	ErrNotFound = errors.New("pace/etcd: no such provider")
	// ErrConflict says that the limit has changed since it was read.
	ErrConflict = errors.New("pace/etcd: the limit has changed since it was read: read it again, and decide again")
)

// AnyRevision makes [Limits.Set] and [Limits.Delete] unconditional.
const AnyRevision int64 = -1
