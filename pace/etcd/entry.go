package etcd

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Balance says how a limit is divided among the instances.
type Balance string

const (
	// Even gives each instance the same part. It is what an empty Balance means.
	Even Balance = "even"
	// Demand gives those more who ask for more, of what others leave.
	Demand Balance = "demand"
)

// Limit is what a provider allows all instances together.
type Limit struct {
	Count   int64         // units a window; 0 admits nothing
	Per     time.Duration // a window's length
	Balance Balance
}

// Member is an instance that lives.
type Member struct {
	ID     string
	Index  int       // in the plan, from 0; -1 when it is not in it yet
	Demand int64     // units that it was asked for in its last whole window
	Seen   time.Time // when it wrote that, by its own wall clock
}

// PlanInfo is the plan that was agreed last.
type PlanInfo struct {
	Limit     int64
	Per       time.Duration
	Instances int
	From      time.Time // the edge of a window from which it holds
	Revision  int64     // etcd's, of its key
}

// BrakeInfo is the brake that holds for all instances.
type BrakeInfo struct {
	Until      time.Time
	Percent    int
	Reason, By string
}

// Entry is all that is known of a provider.
type Entry struct {
	Provider string
	Limit    Limit
	Revision int64 // of the limit, for [Limits.Set]; 0 when none is set
	Plan     *PlanInfo
	Members  []Member // by ID
	Brake    *BrakeInfo
	// Faults says what is written there and is not valid: the instances pass it over.
	Faults []string
}

// empty says that nothing is known at all.
func (e *Entry) empty() bool {
	return e.Revision == 0 && e.Plan == nil && len(e.Members) == 0 && e.Brake == nil && len(e.Faults) == 0
}

// entry gives what a view knows, as operators want it.
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
		e.Members = append(e.Members, Member{ID: id, Index: at, Demand: m.units(), Seen: m.at.Time()})
	}
	faults := v.faults()
	for _, key := range slices.Sorted(maps.Keys(faults)) {
		e.Faults = append(e.Faults, faults[key].Error())
	}
	return e
}

var (
	// ErrNotFound says that nothing is known of a provider: no limit, no instance, no plan.
	ErrNotFound = errors.New("pace/etcd: no such provider")
	// ErrConflict says that the limit is another than the one that was read.
	ErrConflict = errors.New("pace/etcd: the limit has changed since it was read: read it again, and decide anew")
)

// AnyRevision has [Limits.Set] and [Limits.Delete] do what they do whatever is there.
const AnyRevision int64 = -1
