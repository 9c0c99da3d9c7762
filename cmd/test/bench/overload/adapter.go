package overload

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"

	"github.com/headgate/headgate"
	sim "github.com/headgate/headgate/internal/sim/overload"
)

// Failsafe is a Design that executes each attempt with a policy of failsafe-go, in a goroutine,
// like a server. The library reads the clock and waits by timers, so that a Failsafe works in a
// bubble of testing/synctest only. Before each event, the bubble's clock moves to the time of the
// simulation.
//
// A client that leaves cancels its wait, but not the context of work at the service. The policy
// therefore learns the real time of late answers. If the work were canceled too, the adaptive
// limiter would ignore late answers, and its goodput in "bimodal 2" would fall from 0.8 to 0.2.
type Failsafe struct {
	engine   *sim.Engine
	executor failsafe.Executor[any]
	context  func(*sim.Attempt) (context.Context, context.CancelFunc)
	stop     <-chan struct{} // closed at the end of the bubble
	begin    time.Time
	number   int

	mu      sync.Mutex
	decided []*execution // not yet told to the engine
}

// execution is one attempt within the policy.
type execution struct {
	attempt *sim.Attempt
	number  int
	leave   context.CancelFunc // ends the wait
	ended   chan struct{}      // closed when the service has answered
	allowed bool
	left    bool // the client has given up while the attempt waited
}

// newFailsafe returns a design for a policy. The goroutines of the design end with the context,
// which must belong to the bubble.
func newFailsafe(ctx context.Context, policy func() (failsafe.Policy[any], describe)) sim.NewDesign {
	return func(e *sim.Engine) (sim.Design, error) {
		p, describe := policy()
		return &Failsafe{
			engine: e, executor: failsafe.With(p), stop: ctx.Done(), begin: time.Now(),
			context: func(a *sim.Attempt) (context.Context, context.CancelFunc) {
				return context.WithCancel(describe(ctx, a))
			},
		}, nil
	}
}

// Arrive implements Design.
func (f *Failsafe) Arrive(now headgate.Instant, a *sim.Attempt) {
	f.advance(now)
	ctx, cancel := f.context(a)
	f.number++
	x := &execution{attempt: a, number: f.number, leave: cancel, ended: make(chan struct{})}
	a.Request.Owner = x
	go f.execute(ctx, x)
	f.settle()
}

// Ended implements Design.
func (f *Failsafe) Ended(now headgate.Instant, a *sim.Attempt, _ time.Duration) {
	f.advance(now)
	if x, ok := a.Request.Owner.(*execution); ok {
		close(x.ended)
	}
	f.settle()
}

// Left implements Design.
func (f *Failsafe) Left(now headgate.Instant, a *sim.Attempt) {
	if x, ok := a.Request.Owner.(*execution); ok {
		x.left = true
		f.advance(now)
		x.leave()
	}
	f.settle()
}

// advance brings the bubble's clock to the simulation's time. Timers of the library that expire
// on the way run first.
func (f *Failsafe) advance(now headgate.Instant) {
	time.Sleep(time.Duration(now) - time.Since(f.begin)) //nolint:forbidigo // time in the bubble is virtual.
}

// execute runs one attempt like the handler of a server: the policy calls the service, or fails.
func (f *Failsafe) execute(ctx context.Context, x *execution) {
	defer x.leave()
	err := f.executor.WithContext(ctx).Run(func() error {
		f.decide(x, true)
		select {
		case <-x.ended:
		case <-f.stop:
		}
		return nil
	})
	if err != nil {
		f.decide(x, false)
	}
}

func (f *Failsafe) decide(x *execution, allowed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.allowed = allowed
	f.decided = append(f.decided, x)
}

// settle waits until the policy has decided, and tells the engine. Decisions at the same time are
// told in the order of arrival, because goroutines run in any order.
func (f *Failsafe) settle() {
	synctest.Wait()
	f.mu.Lock()
	decided := f.decided
	f.decided = nil
	f.mu.Unlock()
	slices.SortFunc(decided, func(a, b *execution) int { return cmp.Compare(a.number, b.number) })
	for _, x := range decided {
		switch {
		case x.left: // The engine has ended the attempt.
		case x.allowed:
			f.engine.Start(x.attempt)
		default:
			f.engine.Refuse(x.attempt, 0)
		}
	}
}
