package pace_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// scripted is a source that the test controls.
type scripted struct {
	to     chan pace.Receiver
	fails  chan error
	brakes atomic.Int64
}

func script() *scripted {
	return &scripted{to: make(chan pace.Receiver, 1), fails: make(chan error, 1)}
}

func (s *scripted) Follow(ctx context.Context, to pace.Receiver) error {
	s.to <- to
	select {
	case err := <-s.fails:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Brake counts the brakes for all instances.
func (s *scripted) Brake(pace.Brake) { s.brakes.Add(1) }

// scriptedPacer makes a pacer without a plan, and the receiver of its source.
func scriptedPacer(t *testing.T, c pace.Config) (*pace.Pacer, pace.Receiver) {
	t.Helper()
	s := script()
	c.Source = s
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := pace.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, <-s.to
}

func even(t *testing.T, limit int64, per time.Duration, instances, index int) schedule.Plan {
	t.Helper()
	plan, err := schedule.Even(limit, per, instances, index)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// setClock is a wall clock that can be set.
type setClock struct{ by atomic.Int64 }

func (c *setClock) now() headgate.Instant {
	return headgate.Instant(time.Now().UnixNano() + c.by.Load())
}

func (c *setClock) set(by time.Duration) { c.by.Add(int64(by)) }

// toEdge sleeps until the next multiple of per by the bubble's clock.
func toEdge(per time.Duration) {
	sleep(time.Until(time.Now().Truncate(per).Add(per)))
}

// burst takes permits until there are none, and gives their number.
func burst(p *pace.Pacer) int {
	n := 0
	for p.TryAcquire() {
		n++
	}
	return n
}

// outcome is the result of a wait, and its time.
type outcome struct {
	notified bool
	err      error
	at       time.Time
}

func ask(p *pace.Pacer, n int64, maxWait time.Duration) *outcome {
	o := new(outcome)
	p.AcquireFunc(n, maxWait, func(_ headgate.Instant, err error) {
		o.notified, o.err, o.at = true, err, time.Now()
	})
	return o
}

func opensOf(t *testing.T, err error) time.Time {
	t.Helper()
	var late *pace.TimeoutError
	if !errors.As(err, &late) {
		t.Fatalf("%v is no TimeoutError", err)
	}
	return late.Opens
}
