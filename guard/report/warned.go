package report

import (
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// maxWarned bounds the customers whose event is remembered, each for one window. An entry takes about 40 bytes.
// Further customers get no event until windows end, and are counted.
const maxWarned = 65_536

// warned remembers, for each customer and limit above its soft limit, until when no other event is due. The zero warned is
// ready. It is safe for concurrent use.
type warned struct {
	mu      sync.Mutex
	until   map[uint64]headgate.Instant // by the hash of key and limit, the end of the window
	dropped uint64
	swept   headgate.Instant // the time of the last search for ended windows
}

// first reports whether a result is the first above the soft limit in its window, for its customer, in this process.
func (w *warned) first(r *guard.Result) bool {
	now, id := r.Decision.At, warnedID(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if end, known := w.until[id]; known && now < end {
		return false
	}
	if len(w.until) >= maxWarned && !w.sweep(now) {
		w.dropped++
		return false
	}
	if w.until == nil {
		w.until = map[uint64]headgate.Instant{}
	}
	w.until[id] = endOf(r)
	return true
}

// forget lets the next request of a customer send the event.
func (w *warned) forget(r *guard.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.until, warnedID(r))
}

// sweep forgets ended windows, and reports whether there is capacity. It searches at most once a second.
func (w *warned) sweep(now headgate.Instant) bool {
	if now >= w.swept && now.Sub(w.swept) < time.Second {
		return false
	}
	w.swept = now
	for id, end := range w.until {
		if now >= end {
			delete(w.until, id)
		}
	}
	return len(w.until) < maxWarned
}

// endOf gives the end of the window of a result. The window of other algorithms, which has no end, lasts one period.
func endOf(r *guard.Result) headgate.Instant {
	if r.Algorithm() == headgate.FixedWindow {
		return r.Decision.At.Add(r.Decision.ResetAfter) // Its limit is full again when the window ends.
	}
	return r.Decision.At.Add(r.Limit.Per)
}

// warnedID names a customer and a limit. Two of them share a number with a chance of 2^-64 for each pair.
func warnedID(r *guard.Result) uint64 {
	return r.KeyHash() ^ uint64(r.Window+1)*0x9e3779b97f4a7c15
}

// countQuota counts what the results of one rule say of its quota, and sends the event of a soft limit.
func (v *view) countQuota(about subject, results []guard.Result) {
	b := v.block(&results[0])
	if b == nil || about.answer.Verdict == headgate.Deny && results[0].Enforced() {
		return
	}
	soft, metered := false, int64(0)
	for i := range results {
		r := &results[i]
		if r.AboveSoft {
			soft = true
			if r.Enforced() && v.report.warned.first(r) && !v.report.logged().lines.softLimit(r, about) {
				v.report.warned.forget(r)
			}
		}
		if r.Decision.Reason == headgate.Metered && r.Enforced() {
			metered = max(metered, r.Beyond)
		}
	}
	if soft {
		b.aboveSoft.Add(1)
	}
	if metered > 0 { // Without a quota, which is the usual case, the counter stays out of the way of other processors.
		b.metered.Add(uint64(metered))
	}
}

// Unwarned counts the events of soft limits that were not sent, because too many customers were above their soft limits
// at once.
func (r *Report) Unwarned() uint64 {
	r.warned.mu.Lock()
	defer r.warned.mu.Unlock()
	return r.warned.dropped
}
