package rls

import (
	"math"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Hits are the counters of one limit, under the names of Envoy's service.
type Hits struct {
	// Total has all hits, Within those of requests within the limit, and Over those beyond the
	// limit. Near has the hits within the limit, and above the near limit ratio of it. Shadow has
	// the hits of Over that a limit in shadow let pass, and Recalled those that the memory of
	// refusals refused.
	Total, Within, Near, Over, Shadow, Recalled atomic.Uint64
}

// observe counts a decision. ratio is the part of a limit above which hits are near it.
func (h *Hits) observe(a *guard.Answer, req *headgate.Request, ratio float32) {
	r := closest(a)
	if r == nil || r.Fallback || req.Kind == headgate.Refund {
		return
	}
	d, hits := &r.Decision, req.Cost
	h.Total.Add(uint64(hits))
	near := nearOf(d.Limit, ratio)
	if d.Verdict != headgate.Deny {
		after := d.Limit - d.Remaining
		before := after - hits
		if d.Receipt.Empty() {
			before = after // Another descriptor is over its limit, and this one was not counted.
		}
		h.Within.Add(uint64(hits))
		h.Near.Add(uint64(max(0, after-max(before, near))))
		return
	}
	over := max(0, hits-d.Remaining)
	h.Over.Add(uint64(over))
	if r.Recalled {
		h.Recalled.Add(uint64(over))
	}
	if d.Remaining > 0 {
		h.Near.Add(uint64(max(0, d.Limit-max(d.Limit-d.Remaining, near))))
	}
	if !r.Enforced() {
		h.Shadow.Add(uint64(over))
	}
}

// nearOf gives the number of hits above which a hit is near the limit, in the precision of Envoy's
// service.
func nearOf(limit int64, ratio float32) int64 {
	return int64(math.Floor(float64(float32(limit) * ratio)))
}
