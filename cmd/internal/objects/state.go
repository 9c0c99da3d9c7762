package objects

import (
	"sync"
	"time"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// leastLogged is the least time between two failures in the log, without an answer between them.
const leastLogged = time.Minute

// State is what people see of a source. It is safe for concurrent use.
type State struct {
	mu sync.Mutex
	s  Snapshot
}

// Snapshot is a State at a time.
type Snapshot struct {
	// Known is set when objects are in force, from the source or from its cache.
	Known bool
	// Lacks says why no objects are known although the source has answered: the file needs one that the source lacks.
	Lacks string
	// FromCache is set until the source has answered, if the objects come from the cache.
	FromCache bool
	// Revision is that of the source, or of the cache.
	Revision string
	// Changed is when a change last took effect. Reached is when everything that the source had was in force; with
	// FromCache, when the cache was written.
	Changed, Reached time.Time
	// Failures counts failed reads, and Failure is the error of the last one; "" after an answer.
	Failures uint64
	Failure  string
	FailedAt time.Time
	// failureLogged is when the log had a failure.
	failureLogged time.Time
	// Changes counts the changes that took effect, and Refused those that were held back.
	Changes, Refused uint64
	// Objects are those of the source in force, by kind.
	Objects map[source.Kind]int
	Held    []Held
	// CacheWritten is when the cache was last written. CacheFailure is why it cannot be read or written.
	CacheWritten time.Time
	CacheFailure string
}

// Get returns the state as it is now.
func (s *State) Get() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s
}

func (s *State) change(f func(*Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.s)
}

// Cached notes that the objects of a cache are in force.
func (s *State) Cached(c *Cached) {
	s.change(func(n *Snapshot) {
		n.FromCache, n.Revision, n.Reached, n.Changed, n.CacheWritten = true, c.Revision, c.Written, c.Written, c.Written
	})
}

// InForce notes what a table has after changes. former is what it had before, and revision that of the last change.
func (s *State) InForce(t *Table, former *config.Objects, revision string, begun int, now time.Time) {
	in := t.Objects()
	counts := map[source.Kind]int{}
	for _, kind := range source.Kinds() {
		counts[kind] = in.Len(kind)
	}
	held := t.Held()
	s.change(func(n *Snapshot) {
		n.Known, n.Objects, n.Held, n.Revision = in.Known(), counts, held, revision
		n.FromCache = false
		if in != former {
			n.Changed = now
			n.Changes++
		}
		n.Refused += uint64(begun)
	})
}

// Loaded notes what a table has after a cache or a file was read.
func (s *State) Loaded(in *config.Objects, held []Held) {
	counts := map[source.Kind]int{}
	for _, kind := range source.Kinds() {
		counts[kind] = in.Len(kind)
	}
	s.change(func(n *Snapshot) { n.Known, n.Objects, n.Held = in.Known(), counts, held })
}

// Reached notes that the source has answered.
func (s *State) Reached(at time.Time) {
	s.change(func(n *Snapshot) { n.Reached, n.Failure, n.FromCache = at, "", false })
}

// Failed notes that the source cannot be read, and reports whether the log needs it: the first failure, and another one after
// a minute. Texts of one failure differ, for example by ports.
func (s *State) Failed(err error, now time.Time) (log bool) {
	s.change(func(n *Snapshot) {
		other := n.Failure != err.Error()
		if log = n.Failure == "" || other && now.Sub(n.failureLogged) >= leastLogged; log {
			n.failureLogged = now
		}
		n.Failure, n.FailedAt = err.Error(), now
		n.Failures++
	})
	return log
}

// Lacks notes why no objects are known although the source has answered, or that there is no such reason. It reports whether that is
// news.
func (s *State) Lacks(text string) (other bool) {
	s.change(func(n *Snapshot) { other, n.Lacks = n.Lacks != text, text })
	return other
}

// CacheWritten notes the result of a write of the cache, and reports whether it differs from the one before.
func (s *State) CacheWritten(err error, now time.Time) (other bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.change(func(n *Snapshot) {
		other = n.CacheFailure != text
		if n.CacheFailure = text; err == nil {
			n.CacheWritten = now
		}
	})
	return other
}
