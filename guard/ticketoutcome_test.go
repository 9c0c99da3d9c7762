package guard_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/guard"
)

// TestDurationOfRefusals: Outcome.Duration of a refused request includes its waits.
func TestDurationOfRefusals(t *testing.T) {
	for name, leaves := range map[string]bool{"refused": false, "left": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := &scripted{decide: holds}, &scripted{decide: admits}
				g, _ := staged(t, first, second)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var ticket guard.Ticket
				admit(ctx, t, g, &ticket)
				time.AfterFunc(3*time.Second, func() {
					if cancel(); !leaves {
						first.handle.Resume(refuses)
					}
				})
				waits := ctx
				if !leaves {
					waits = t.Context()
				}
				_, _ = ticket.Wait(waits)
				ticket.Done(guard.Outcome{End: guard.Refused})
				if d := first.ended[0].Duration; d != 3*time.Second {
					t.Errorf("the duration is %v, want 3s", d)
				}
			})
		})
	}
}

// TestStopped: a request that a stage has ended has the End Stopped, whether the front says
// ClientLeft or Failed.
func TestStopped(t *testing.T) {
	errStop := errors.New("stop")
	for name, c := range map[string]struct {
		cause       error
		early, left bool
		said, want  guard.End
	}{
		"by a stage":              {cause: errStop, said: guard.ClientLeft, want: guard.Stopped},
		"without a cause":         {said: guard.ClientLeft, want: guard.Stopped},
		"before its context":      {early: true, said: guard.ClientLeft, want: guard.Stopped},
		"an answer is broken":     {cause: errStop, said: guard.Failed, want: guard.Stopped},
		"answered all the same":   {cause: errStop, said: guard.Answered, want: guard.Answered},
		"the client leaves first": {cause: errStop, left: true, said: guard.ClientLeft, want: guard.ClientLeft},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := &scripted{decide: admits, facts: guard.Facts{Ends: true}}, &scripted{decide: admits}
			g, _ := staged(t, first, second)
			client, leave := context.WithCancel(t.Context())
			defer leave()
			var ticket guard.Ticket
			admit(client, t, g, &ticket)
			ticket.Forward()
			if c.early {
				first.handle.End(c.cause)
			}
			ctx := ticket.Context(client)
			if c.left {
				leave()
			}
			if !c.early {
				first.handle.End(c.cause)
			}
			if ctx.Err() == nil || ticket.Stopped() == c.left {
				t.Errorf("the context says %v; stopped: %v", ctx.Err(), ticket.Stopped())
			}
			ticket.Done(guard.Outcome{End: c.said})
			if o := first.ended[0]; o.End != c.want {
				t.Errorf("the end is %v, want %v", o.End, c.want)
			}
		})
	}
}

// A stage without Facts.Ends ends no request.
func TestEndsWithoutSayingSo(t *testing.T) {
	first, second := &scripted{decide: admits}, &scripted{decide: admits}
	g, _ := staged(t, first, second)
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	if first.handle.End(context.Canceled) || ticket.Stopped() {
		t.Error("the request is said to be ended")
	}
	ticket.Done(guard.Outcome{})
}

// TestStaleHandles: a stage calls the handle of an ended request while the Ticket is reused under a
// configuration without stages.
func TestStaleHandles(t *testing.T) {
	first, second := &scripted{decide: admits, facts: guard.Facts{Ends: true}}, &scripted{decide: admits}
	g, _ := staged(t, first, second)
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	ticket.Done(guard.Outcome{})
	if err := g.Reload(guard.Config{Store: g.Store()}); err != nil {
		t.Fatal(err)
	}
	stale := first.handle
	var all sync.WaitGroup
	all.Go(func() {
		for range 100 {
			if stale.Resume(admits) || stale.End(nil) {
				t.Error("the handle reaches another request")
			}
		}
	})
	for range 100 {
		admit(t.Context(), t, g, &ticket)
		ticket.Done(guard.Outcome{})
	}
	all.Wait()
}
