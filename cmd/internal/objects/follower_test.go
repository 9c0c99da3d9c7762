package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

// scripted is a source that follows a script.
type scripted struct {
	script func(ctx context.Context, to source.Receiver)
	closed bool
}

func (s *scripted) Follow(ctx context.Context, to source.Receiver) {
	s.script(ctx, to)
	<-ctx.Done()
}

func (s *scripted) Close() error { s.closed = true; return nil }

// notes is a Sink that notes its calls.
type notes struct{ all []string }

func (n *notes) Changed(all []source.Change) {
	var revisions []string
	for _, c := range all {
		revisions = append(revisions, c.Revision)
	}
	n.all = append(n.all, "changed "+strings.Join(revisions, ","))
}
func (n *notes) Reached(time.Time) { n.all = append(n.all, "reached") }
func (n *notes) Failed(err error)  { n.all = append(n.all, "failed "+err.Error()) }

// TestFollower: changes that follow each other within a quarter of a second come together, and the order stays.
func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &notes{}
		from := &scripted{script: func(_ context.Context, to source.Receiver) {
			to.Changed(source.Change{All: true, Revision: "1"})
			to.Reached(time.Now())
			for n := 2; n < 5; n++ {
				time.Sleep(20 * time.Millisecond) //nolint:forbidigo // in the bubble of TestFollower
				to.Changed(source.Change{Revision: fmt.Sprint(n)})
			}
			time.Sleep(time.Second) //nolint:forbidigo // in the bubble of TestFollower
			to.Changed(source.Change{Revision: "5"})
			to.Failed(errors.New("gone"))
		}}
		f := Follow(from, sink)
		time.Sleep(2 * time.Second) //nolint:forbidigo // in the bubble of TestFollower
		if err := f.Stop(); err != nil || !from.closed {
			t.Errorf("stop: %v, closed %v", err, from.closed)
		}
		const want = "changed 1; reached; changed 2,3,4; changed 5; failed gone"
		if got := strings.Join(sink.all, "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestWriter: a cache is written at once, then at most once a second, and at the end.
func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		w := NewWriter(func(func()) { at = append(at, time.Since(began)) })
		for range 25 {
			w.Changed()
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in the bubble of TestWriter
		}
		w.Changed()
		w.Stop()
		want := []time.Duration{0, time.Second, 2 * time.Second, 2500 * time.Millisecond}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("written at %v, want %v", at, want)
		}
	})
}

// TestCollectedBytes: a source whose changes are large waits until the sink has taken earlier ones, also while more are collected.
func TestCollectedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("x", 1<<20)
		large := func(revision string) source.Change {
			c := source.Change{Revision: revision}
			for len(c.Objects)<<20 <= source.MaxTotal/2 {
				c.Objects = append(c.Objects, source.Object{Text: text})
			}
			return c
		}
		sink := &notes{}
		f := Follow(&scripted{script: func(_ context.Context, to source.Receiver) {
			to.Changed(large("1"))
			to.Changed(source.Change{Revision: "2"})
			to.Changed(large("3"))
			to.Changed(source.Change{Revision: "4"})
		}}, sink)
		time.Sleep(2 * time.Second) //nolint:forbidigo // in the bubble of TestCollectedBytes
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
		const want = "changed 1,2; changed 3,4"
		if got := strings.Join(sink.all, "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestQueuedBytes: a source whose changes are large waits until earlier ones were taken.
func TestQueuedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const half = source.MaxTotal/2 + 1
		q, added := newQueued(), 0
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for q.add(ctx, half) {
				added++
			}
		}()
		for n := 1; n < 4; n++ {
			synctest.Wait()
			if added != n {
				t.Errorf("after %d removals, %d changes were added", n-1, added)
			}
			q.remove(half)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if added != 4 {
			t.Errorf("after a stop, %d changes were added, want 4", added)
		}
	})
}
