package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// view is an instance's copy of its provider's keys. Each has a revision, and older values are
// ignored. So reads and the watch may come in any order.
type view struct {
	keys  keys
	limit struct {
		asOf, mod int64 // mod is 0 for a missing key
		limit     Limit
		err       error // the reason why it is invalid
	}
	plan struct {
		asOf int64
		mark mark
		plan *plan // nil without a valid plan
		text string
		err  error
	}
	good  *plan // the last valid plan
	brake struct {
		asOf  int64
		brake *BrakeInfo
		err   error
	}
	members struct {
		asOf int64
		all  map[string]member
	}
}

// member is a live instance.
type member struct {
	report

	id     string
	create int64 // the revision at which it joined
	err    error // the reason why its report is invalid
}

// allowed gives the limit to divide: the operators' limit, or that of the present plan while the
// operators' limit is missing, invalid, or has windows without common edges with the plan.
// Without both, there is no limit: the memory of one instance may be older than the limit of the
// others.
func (v *view) allowed() (l Limit, ok bool) {
	present := v.plan.plan
	switch {
	case v.limit.mod != 0 && v.limit.err == nil && v.meet() == nil:
		return v.limit.limit, true
	case present == nil:
		return Limit{}, false
	}
	return Limit{present.limit, present.per, Even}, true
}

// meet gives an error when the windows of the limit and of the last valid plan have hardly any
// edges in common.
func (v *view) meet() error {
	if l := &v.limit; v.good != nil && l.mod != 0 && l.err == nil {
		_, err := commonLength(v.good.per, l.limit.Per)
		return err
	}
	return nil
}

// setLimit applies the limit's key at a revision; nil is a missing key.
func (v *view) setLimit(kv *keyValue, asOf int64) {
	l := &v.limit
	if asOf < l.asOf {
		return
	}
	l.asOf, l.mod, l.limit, l.err = asOf, 0, Limit{}, nil
	if kv != nil {
		l.mod = kv.mod
		l.limit, l.err = parseLimit(kv.value)
	}
}

func (v *view) setBrake(kv *keyValue, asOf int64) {
	b := &v.brake
	if asOf < b.asOf {
		return
	}
	b.asOf, b.brake, b.err = asOf, nil, nil
	if kv != nil {
		b.brake, b.err = parseBrake(kv.value)
	}
}

// setPlan applies the plan's key, and reports whether the plan has changed.
func (v *view) setPlan(kv *keyValue, asOf int64) bool {
	p := &v.plan
	if asOf < p.asOf || asOf == p.asOf && markOf(kv) == p.mark {
		return false
	}
	p.asOf = asOf
	if markOf(kv) == p.mark {
		return false
	}
	p.mark, p.plan, p.err, p.text = markOf(kv), nil, nil, ""
	if kv != nil {
		p.text = string(kv.value[:min(len(kv.value), maxRecord)])
		p.plan, p.err = parsePlan(kv.value)
	}
	if p.err != nil {
		p.plan = nil
	}
	if p.plan != nil {
		v.good = p.plan
	}
	return true
}

// changed reports that a known write has other contents: the history is then another one.
func (v *view) changed(kv *keyValue) bool {
	return kv != nil && markOf(kv) == v.plan.mark && string(kv.value[:min(len(kv.value), maxRecord)]) != v.plan.text
}

// setMembers applies all members at a revision.
func (v *view) setMembers(all []*keyValue, asOf int64) {
	if asOf < v.members.asOf {
		return
	}
	v.members.asOf, v.members.all = asOf, make(map[string]member, len(all))
	for _, kv := range all {
		v.setMember(kv, asOf)
	}
}

// setMember applies a changed member at a revision. A key without a lease is ignored, because it
// would never expire.
func (v *view) setMember(kv *keyValue, asOf int64) {
	if asOf < v.members.asOf {
		return
	}
	v.members.asOf = asOf
	id := strings.TrimPrefix(kv.key, v.keys.members())
	if checkName("member", id) != nil {
		return
	}
	if kv.create == 0 || kv.lease == 0 {
		delete(v.members.all, id)
		return
	}
	if _, known := v.members.all[id]; !known && len(v.members.all) > maxMembers {
		return
	}
	m := member{id: id, create: kv.create}
	m.report, m.err = parseReport(kv.value)
	if v.members.all == nil {
		v.members.all = map[string]member{}
	}
	v.members.all[id] = m
}

// living gives the live instances in the order in which they joined, at most maxMembers.
func (v *view) living() []string {
	all := make([]member, 0, len(v.members.all))
	for _, m := range v.members.all {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.create, b.create), cmp.Compare(a.id, b.id))
	})
	ids := make([]string, 0, len(all))
	for _, m := range all[:min(len(all), maxMembers)] {
		ids = append(ids, m.id)
	}
	return ids
}

// bounds gives the shortest and the longest Propagation of all live instances, this one included.
func (v *view) bounds(own time.Duration) (shortest, longest time.Duration) {
	shortest, longest = own, own
	for _, m := range v.members.all {
		if m.bound >= minPropagation {
			shortest, longest = min(shortest, m.bound), max(longest, m.bound)
		}
	}
	return shortest, longest
}

// faults gives the faults of the keys, by key.
func (v *view) faults() map[string]error {
	all := map[string]error{}
	note := func(key string, err error) {
		if err != nil {
			all[key] = fmt.Errorf("%s: %w: it counts as not written", key, err)
		}
	}
	note(v.keys.limit(), errors.Join(v.limit.err, v.meet()))
	if wrong := all[v.keys.limit()]; wrong == nil && v.limit.limit.Balance == retired {
		all[v.keys.limit()] = fmt.Errorf("%s: the limit is divided evenly: %s", v.keys.limit(), NoDemand)
	}
	note(v.keys.plan(), v.plan.err)
	note(v.keys.brake(), v.brake.err)
	for id, m := range v.members.all {
		if m.err != nil {
			note(v.keys.members(), fmt.Errorf("%s: %w", id, m.err))
			break // One fault is enough.
		}
	}
	if len(v.members.all) > maxMembers {
		note(v.keys.members(), fmt.Errorf("more than %d instances: those that came last have no part", maxMembers))
	}
	return all
}

// reset drops everything except the last valid plan, before another history.
func (v *view) reset() {
	*v = view{keys: v.keys, good: v.good}
}
