package rls

import (
	"math"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// descriptorStatus is the status of one descriptor, before its conversion.
type descriptorStatus struct {
	over bool
	// limit is the limit that is shown, and name its name. A limit without a Per is not shown.
	limit     headgate.Limit
	name      string
	remaining int64
	reset     time.Duration // whole seconds; 0 shows none
	// quota says that the limit has quota_mode, and violated that it is exceeded then.
	quota, violated bool
	leaf            *guard.Leaf
}

// unlimited is the number of remaining requests that a limit without an end shows.
const unlimited = 1<<32 - 1

// statusOf describes the decision on a descriptor.
func statusOf(a *guard.Answer, o *Options) descriptorStatus {
	s := descriptorStatus{leaf: a.Leaf()}
	if s.leaf != nil && s.leaf.Unlimited {
		s.remaining = unlimited
		return s
	}
	r := closest(a)
	if r == nil {
		return s
	}
	s.over = a.Verdict == headgate.Deny
	s.limit, s.remaining = r.Limit, r.Decision.Remaining
	if r.Decision.Verdict == headgate.Deny {
		s.remaining = 0
	}
	s.quota = a.InTree() && o.QuotaMode || s.leaf != nil && s.leaf.QuotaMode
	if s.leaf != nil {
		s.name = s.leaf.Name
	}
	if r.Decision.At == 0 { // The fallback decided, which knows no counts.
		s.remaining = 0
		return s
	}
	s.reset = resetOf(r)
	return s
}

// judge makes the statuses of a call, and reports whether the call is over its limits.
func (c *call) judge(o *Options) (over bool) {
	c.statuses = c.statuses[:0]
	for i := range c.requests {
		c.statuses = append(c.statuses, statusOf(&c.answers[i], o))
	}
	return overall(c.statuses)
}

// closest gives the result that is shown: that of the verdict, or else the closest limit in shadow.
func closest(a *guard.Answer) *guard.Result {
	if r := a.Closest(); r != nil {
		return r
	}
	var found *guard.Result
	for i := range a.Results {
		r := &a.Results[i]
		if r.Rule.TrialOf != "" {
			continue
		}
		if found == nil || r.Decision.Verdict > found.Decision.Verdict ||
			r.Decision.Verdict == found.Decision.Verdict && r.Decision.Remaining < found.Decision.Remaining {
			found = r
		}
	}
	return found
}

// resetOf gives the time until the reset of a limit in whole seconds, at least 1. Fixed windows end
// on multiples of their period, whether they have counted units or not.
func resetOf(r *guard.Result) time.Duration {
	left := r.Decision.ResetAfter
	if r.Algorithm() == headgate.FixedWindow && r.Limit.Calendar == headgate.NoCalendar {
		left = r.Limit.Per - time.Duration(int64(r.Decision.At)%int64(r.Limit.Per))
	}
	return time.Duration(min(fields.RetrySeconds(left), int64(math.MaxInt64/time.Second))) * time.Second
}

// overall decides the whole request, and clears over where quota_mode lets a descriptor pass. A
// request is over its limits when a descriptor without quota_mode is, or when all descriptors with
// quota_mode are, and there is one.
func overall(statuses []descriptorStatus) (over bool) {
	quotas, passing := 0, 0
	for i := range statuses {
		s := &statuses[i]
		switch {
		case s.quota && !s.over:
			quotas, passing = quotas+1, passing+1
		case s.quota:
			quotas++
			s.violated = true
		default:
			over = over || s.over
		}
	}
	if quotas > 0 && passing == 0 {
		over = true
	} else {
		for i := range statuses {
			statuses[i].over = statuses[i].over && !statuses[i].violated
		}
	}
	return over
}

// shown gives the status for headers: the last one over its limit, or else the one with the fewest
// remaining requests; nil without a limit.
func shown(statuses []descriptorStatus) *descriptorStatus {
	var found *descriptorStatus
	for i := range statuses {
		s := &statuses[i]
		switch {
		case !s.limit.HasPeriod():
		case s.over, found == nil, !found.over && s.remaining < found.remaining:
			found = s
		}
	}
	return found
}
