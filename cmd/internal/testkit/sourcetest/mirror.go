package sourcetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

// long bounds each wait; a busy machine may need a part of it. It is several times Patience, so that a source that has run into it tries
// again.
const long = 3 * time.Minute

// Patience is the timeout of sources in stories that are not about it. A machine with many more runnable processes than cores takes
// longer than the default of 5 s for one connection with a password, under the race detector: then no attempt of a source succeeds.
const Patience = 30 * time.Second

// Mirror is a receiver that has what a source has given it. Its fields are read in Until's condition only.
type Mirror struct {
	t       *testing.T
	mu      sync.Mutex
	changed chan struct{} // Closed and replaced with each call.

	// Objects are the objects after the last change, and Changes all changes.
	Objects  map[source.Key]source.Object
	Changes  []source.Change
	Revision string
	At       time.Time // The last time of Reached.
	Failures []error
	// Check is called with each change and the objects after it.
	Check func(source.Change, map[source.Key]source.Object)
}

// Follow follows a source until the test ends, or until the returned function is called, which waits for the end.
func Follow(t *testing.T, s source.Source, check func(source.Change, map[source.Key]source.Object)) (*Mirror, func()) {
	t.Helper()
	m := &Mirror{t: t, changed: make(chan struct{}), Objects: map[source.Key]source.Object{}, Check: check}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var work sync.WaitGroup
	work.Go(func() { s.Follow(ctx, m) })
	stop := sync.OnceFunc(func() {
		cancel()
		work.Wait()
	})
	t.Cleanup(stop)
	return m, stop
}

// call runs a function with the lock, and wakes those that wait.
func (m *Mirror) call(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Changed implements source.Receiver. It checks what each change promises.
func (m *Mirror) Changed(c source.Change) { m.call(func() { m.take(c) }) }

func (m *Mirror) take(c source.Change) {
	if len(m.Changes) == 0 && !c.All {
		m.t.Error("the first change does not have all objects")
	}
	if c.All {
		m.Objects = map[source.Key]source.Object{}
		if len(c.Deleted) > 0 {
			m.t.Errorf("a change with all objects deletes %v", c.Deleted)
		}
	} else if len(c.Objects)+len(c.Deleted) == 0 && len(m.Changes) > 0 && c.Position <= m.Changes[len(m.Changes)-1].Position {
		m.t.Errorf("an empty change with position %d after position %d", c.Position, m.Changes[len(m.Changes)-1].Position)
	}
	seen := map[source.Key]bool{}
	for _, o := range c.Objects {
		if seen[o.Key] || o.Revision < 1 {
			m.t.Errorf("%s is twice in a change, or has revision %d", o.Key, o.Revision)
		}
		if former, ok := m.Objects[o.Key]; ok && o.Revision < former.Revision {
			m.t.Errorf("%s goes from revision %d to %d", o.Key, former.Revision, o.Revision)
		}
		seen[o.Key], m.Objects[o.Key] = true, o
	}
	for _, k := range c.Deleted {
		if seen[k] {
			m.t.Errorf("%s is twice in a change", k)
		}
		seen[k] = true
		delete(m.Objects, k)
	}
	if c.Revision == "" {
		m.t.Error("a change without a revision")
	}
	m.Revision = c.Revision
	m.Changes = append(m.Changes, c)
	if m.Check != nil {
		m.Check(c, m.Objects)
	}
}

// Reached implements source.Receiver.
func (m *Mirror) Reached(at time.Time) {
	m.call(func() {
		if at.Before(m.At) || at.After(time.Now()) {
			m.t.Errorf("reached %v after %v, at %v", at, m.At, time.Now())
		}
		m.At = at
	})
}

// Failed implements source.Receiver.
func (m *Mirror) Failed(err error) { m.call(func() { m.Failures = append(m.Failures, err) }) }

// Until waits for a condition.
func (m *Mirror) Until(what string, ok func() bool) {
	m.t.Helper()
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		m.mu.Lock()
		done, changed := ok(), m.changed
		m.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			m.t.Fatalf("not within %v: %s; %s", long, what, m.summary())
		}
	}
}

func (m *Mirror) summary() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("revision %q, %d objects, %d changes, the last failures: %v",
		m.Revision, len(m.Objects), len(m.Changes), m.Failures[max(0, len(m.Failures)-2):])
}

// Fails waits until a failure has a text.
func (m *Mirror) Fails(text string) {
	m.t.Helper()
	m.Until("it fails with "+text, func() bool {
		return slices.ContainsFunc(m.Failures, func(err error) bool { return strings.Contains(err.Error(), text) })
	})
}

// UntilNow waits until the receiver has everything that the source has now.
func (m *Mirror) UntilNow() {
	m.t.Helper()
	now := time.Now()
	m.Until("the receiver reaches the present", func() bool { return m.At.After(now) })
}

// Has waits until the receiver has exactly these objects.
func (m *Mirror) Has(texts map[source.Key]string) {
	m.t.Helper()
	m.Until(fmt.Sprintf("the receiver has %d objects: %.300v", len(texts), texts), func() bool {
		return maps.Equal(textsOf(m.Objects), texts)
	})
}

func textsOf(objects map[source.Key]source.Object) map[source.Key]string {
	texts := map[source.Key]string{}
	for k, o := range objects {
		texts[k] = o.Text
	}
	return texts
}

// SameAs compares the receiver with the twin: a fresh read of everything by another source.
func (m *Mirror) SameAs(t *testing.T, fresh source.Source) {
	t.Helper()
	m.UntilNow()
	twin, stop := Follow(t, fresh, nil)
	twin.UntilNow()
	stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(m.Objects, twin.Objects) {
		t.Errorf("the receiver has %d objects, and a fresh read %d: they differ in %v",
			len(m.Objects), len(twin.Objects), difference(m.Objects, twin.Objects))
	}
	if m.Revision != twin.Revision {
		t.Errorf("the receiver has revision %s, and a fresh read %s", m.Revision, twin.Revision)
	}
}

func difference(a, b map[source.Key]source.Object) []string {
	var keys []string
	for k := range a {
		if a[k] != b[k] {
			keys = append(keys, fmt.Sprintf("%s at %d and %d", k, a[k].Revision, b[k].Revision))
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k.String()+" is missing")
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), 10)]
}
