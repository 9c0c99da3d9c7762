package report

import (
	"sync/atomic"
	"time"
)

// Reloads counts the reloads of the configuration. The zero Reloads is ready to use.
type Reloads struct {
	done, failed atomic.Uint64
	broken       atomic.Bool
	last         atomic.Int64
}

// Started records the time of the first configuration, which does not count as a reload.
func (r *Reloads) Started(at time.Time) { r.last.Store(at.UnixNano()) }

// Loaded records that a configuration took effect at a time.
func (r *Reloads) Loaded(at time.Time) {
	r.done.Add(1)
	r.broken.Store(false)
	r.last.Store(at.UnixNano())
}

// Failed records an invalid configuration. The configuration before it stays in effect.
func (r *Reloads) Failed() {
	r.failed.Add(1)
	r.broken.Store(true)
}

// SetGood records whether all parts of the last reload succeeded.
func (r *Reloads) SetGood(good bool) { r.broken.Store(!good) }

// Counts returns the number of successful and failed reloads after the start.
func (r *Reloads) Counts() (loaded, failed uint64) { return r.done.Load(), r.failed.Load() }

// Good reports whether the last reload succeeded.
func (r *Reloads) Good() bool { return !r.broken.Load() }

// Last returns the time at which a configuration last took effect, or the zero time.
func (r *Reloads) Last() time.Time {
	if ns := r.last.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}
