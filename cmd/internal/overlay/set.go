// Package overlay has what operators change at run time on top of the configuration: entries with an end, of one instance or of all
// instances with one source. Modes, trials and the limits of single keys are sets of entries.
package overlay

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config/source"
)

// retryAfter is the pause after an end of entries that could not be applied.
const retryAfter = time.Second

// Entry is one change of the run time. A value of it does not change.
type Entry interface {
	comparable
	// Ends is the time of its end; zero without one.
	Ends() time.Time
}

// Kind says what the entries of a Set are.
type Kind[E Entry] struct {
	// Name is what the log calls them, in the plural.
	Name string
	// Over gives what is in effect of the entries of an instance and of those of the source.
	Over func(here, fleet map[string]E) map[string]E
	// Text describes entries in one line.
	Text func(map[string]E) string
	// Object names the object of a source that has the entries of all instances, so that each change is one write. Encode writes its text,
	// "" without entries, and Decode reads it. A Set without an Object has entries of its instance alone.
	Object source.Key
	Encode func(map[string]E) (string, error)
	Decode func(text string) (map[string]E, error)
}

// Set has the entries of one kind by their names. It ends them at their time, and has the instance take its configuration again.
type Set[E Entry] struct {
	Kind[E]

	// Now gives the time, for tests.
	Now func() time.Time

	host     *component.Host
	instance component.Configuration
	current  atomic.Pointer[map[string]E] // Those in effect. Writers hold the lock of instance.
	// here are the entries of this instance, and fleet those of the source, with its text and revision. The lock of instance guards them.
	here, fleet map[string]E
	text        string
	revision    int64         // of the object that the instance has followed; 0 without one
	failed      atomic.Bool   // Those in effect are not here over fleet: the configuration could not be applied.
	changed     chan struct{} // wakes the goroutine that waits for the first end
	stop        chan struct{}
	stopping    sync.Once
}

// New makes a Set without entries.
func New[E Entry](host *component.Host, instance component.Configuration, kind Kind[E]) *Set[E] {
	s := &Set[E]{Kind: kind, host: host, instance: instance, Now: time.Now, changed: make(chan struct{}, 1), stop: make(chan struct{})}
	s.current.Store(&map[string]E{})
	return s
}

// Current gives the entries in effect. The caller does not change them.
func (s *Set[E]) Current() map[string]E { return *s.current.Load() }

// Here gives the entries of this instance that have not ended, and Fleet those of the source. The caller holds the lock of the instance.
func (s *Set[E]) Here() map[string]E { return At(s.here, s.Now()) }

// Fleet gives the entries of the source that have not ended.
func (s *Set[E]) Fleet() map[string]E { return At(s.fleet, s.Now()) }

// At gives the entries that have not ended.
func At[E Entry](all map[string]E, now time.Time) map[string]E {
	next := map[string]E{}
	for name, one := range all {
		if end := one.Ends(); end.IsZero() || now.Before(end) {
			next[name] = one
		}
	}
	return next
}

// First gives the first end; zero without one.
func First[E Entry](all map[string]E) (first time.Time) {
	for _, one := range all {
		if end := one.Ends(); !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// Run ends entries at their time, and tries again to apply those that could not be applied. It returns after Stop.
func (s *Set[E]) Run() {
	for {
		var end <-chan time.Time
		timer := (*time.Timer)(nil)
		first := First(s.Current())
		if s.failed.Load() {
			first = s.Now().Add(retryAfter)
		}
		if !first.IsZero() {
			timer = time.NewTimer(first.Sub(s.Now()))
			end = timer.C
		}
		select {
		case <-s.stop:
		case <-s.changed:
		case <-end:
			s.Expire()
		}
		if timer != nil {
			timer.Stop()
		}
		select {
		case <-s.stop:
			return
		default:
		}
	}
}

// Stop ends Run. The entries stay.
func (s *Set[E]) Stop() { s.stopping.Do(func() { close(s.stop) }) }

// Expire takes back the entries that have ended.
func (s *Set[E]) Expire() {
	s.instance.Lock()
	defer s.instance.Unlock()
	former := s.Current()
	if s.Renew() && !maps.Equal(former, s.Current()) {
		s.host.Log.Info("changes of the run time have ended", "kind", s.Name, "before", s.Text(former), "after", s.Text(s.Current()))
	}
}

// Renew applies the entries that should be in effect now. After a failure, Run tries again. The caller holds the lock of the instance.
func (s *Set[E]) Renew() bool {
	s.here = s.Here()
	next := s.Over(s.here, s.Fleet())
	if maps.Equal(next, s.Current()) {
		s.failed.Store(false)
		return true
	}
	err := s.put(next)
	if err != nil && !errors.Is(err, component.ErrStopping) && !s.failed.Swap(true) {
		s.host.Log.Error("the configuration could not be applied with other changes of the run time: the former ones stay", "kind", s.Name,
			"error", err)
	}
	if err == nil {
		s.failed.Store(false)
	}
	s.wake()
	return err == nil
}

// SetHere applies other entries of this instance or, after an error, leaves the former ones. The caller holds the lock of the instance.
func (s *Set[E]) SetHere(next map[string]E) error {
	if err := s.put(s.Over(next, s.Fleet())); err != nil {
		return err
	}
	s.here = next
	return nil
}

// put applies entries, or leaves the former ones. The caller holds the lock of instance.
func (s *Set[E]) put(next map[string]E) error {
	former := s.current.Swap(&next)
	if err := s.instance.Again(); err != nil {
		s.current.Store(former)
		return err //nolint:wrapcheck // The caller says what failed.
	}
	s.wake()
	return nil
}

// wake has Run look at the ends again.
func (s *Set[E]) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
