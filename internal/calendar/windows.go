package calendar

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Windows gives the edges of the windows of one unit, and computes them once for each window.
// Windows is safe for concurrent use. New makes it; the zero Windows gives edges that no store
// accepts.
type Windows struct {
	settings Settings
	unit     Unit
	edges    atomic.Pointer[headgate.Edges]
}

// New returns the windows of a unit. New panics if the settings do not pass Check, or if unit
// is not a unit of this package.
func New(s Settings, unit Unit) *Windows {
	if err := s.Check(); err != nil {
		panic(err) //nolint:forbidigo // because only a programmer's fault at construction leads here
	}
	if unit < Day || unit > Year {
		panic(fmt.Sprintf("calendar: %s is no unit of a window: use day, week, month or year", unit)) //nolint:forbidigo // as above
	}
	return &Windows{settings: s, unit: unit}
}

// Settings returns the settings of the windows.
func (w *Windows) Settings() Settings { return w.settings }

// Unit returns the unit of the windows.
func (w *Windows) Unit() Unit { return w.unit }

// Length returns the length of the window that contains at. For a time outside the windows around
// the last call of Edges, it computes them. 0 means the present window of the last call.
func (w *Windows) Length(at headgate.Instant) time.Duration {
	e := w.edges.Load()
	switch {
	case e == nil:
		computed := w.settings.Edges(w.unit, time.Unix(0, int64(at)))
		e = &computed
	case at == 0:
		return e[2].Sub(e[1])
	}
	start, end, ok := e.Window(at)
	if !ok {
		computed := w.settings.Edges(w.unit, time.Unix(0, int64(at)))
		start, end = computed[1], computed[2]
	}
	return end.Sub(start)
}

// Edges returns the edges around at. The caller must not change them. In the window of the
// last call, Edges loads one pointer and allocates nothing.
func (w *Windows) Edges(at headgate.Instant) *headgate.Edges {
	if e := w.edges.Load(); e != nil && at >= e[1] && at < e[2] {
		return e
	}
	e := w.settings.Edges(w.unit, time.Unix(0, int64(at)))
	w.edges.Store(&e)
	return &e
}
