package report

import (
	"sync/atomic"
	"time"
)

// Reloads counts how the configuration was read again. The zero Reloads is ready
// to use.
type Reloads struct {
	done, failed atomic.Uint64
	broken       atomic.Bool
	last         atomic.Int64
}

// Started notes the configuration of the start, which is no reload.
func (r *Reloads) Started(at time.Time) { r.last.Store(at.UnixNano()) }

// Loaded notes a configuration that took effect at a time.
func (r *Reloads) Loaded(at time.Time) {
	r.done.Add(1)
	r.broken.Store(false)
	r.last.Store(at.UnixNano())
}

// Failed notes one that was at fault: the one before it stays in effect.
func (r *Reloads) Failed() {
	r.failed.Add(1)
	r.broken.Store(true)
}

// SetGood notes whether all parts of a reload that were tried last succeeded.
func (r *Reloads) SetGood(good bool) { r.broken.Store(!good) }

// Counts gives how often a configuration took effect after the start, and how
// often one did not.
func (r *Reloads) Counts() (loaded, failed uint64) { return r.done.Load(), r.failed.Load() }

// Good reports whether the last configuration that was read took effect.
func (r *Reloads) Good() bool { return !r.broken.Load() }

// Last gives when a configuration took effect last; the zero time is never.
func (r *Reloads) Last() time.Time {
	if ns := r.last.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}
