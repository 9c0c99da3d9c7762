// Package overload compares Headgate's throttle with other designs in the simulation of
// internal/sim/overload, in one table. Failsafe runs the real policies of failsafe-go.
//
// The adaptive throttler of failsafe-go does not take part. It is for clients, and does not bound
// the requests in flight. In front of the service of "bimodal 2", its goodput is 0.
package overload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/priority"

	sim "github.com/headgate/headgate/internal/sim/overload"
)

// calibration is the interval of failsafe-go's documentation for prioritizers.
const calibration = time.Second

// describe adds what a policy reads of an attempt to its context.
type describe func(context.Context, *sim.Attempt) context.Context

// NewLimiter returns a design with an adaptive limiter with default settings, which refuses
// requests above its limit.
func NewLimiter(ctx context.Context) sim.NewDesign {
	return newFailsafe(ctx, func() (failsafe.Policy[any], describe) {
		return adaptivelimiter.NewWithDefaults[any](), plain
	})
}

// NewPriorityLimiter returns a design with an adaptive limiter with default settings and a queue,
// which refuses requests by class.
func NewPriorityLimiter(ctx context.Context) sim.NewDesign {
	return newFailsafe(ctx, func() (failsafe.Policy[any], describe) {
		p := adaptivelimiter.NewPrioritizer()
		p.ScheduleCalibrations(ctx, calibration)
		return adaptivelimiter.NewBuilder[any]().BuildPrioritized(p), byLevel()
	})
}

// NewUsageLimiter returns the design of NewPriorityLimiter with a usage tracker: within a class it
// refuses the tenants with the most service time first.
func NewUsageLimiter(ctx context.Context) sim.NewDesign {
	return newFailsafe(ctx, func() (failsafe.Policy[any], describe) {
		users := priority.NewUsageTracker(time.Minute, 100)
		p := adaptivelimiter.NewPrioritizerBuilder().WithUsageTracker(users).Build()
		p.ScheduleCalibrations(ctx, calibration)
		return adaptivelimiter.NewBuilder[any]().BuildPrioritized(p), byUser
	})
}

// NewBulkhead returns a design with the throttle's limit of 16 requests, for which requests wait
// up to a fifth of their deadline.
func NewBulkhead(ctx context.Context) sim.NewDesign {
	return newFailsafe(ctx, func() (failsafe.Policy[any], describe) {
		return bulkhead.NewBuilder[any](16).WithMaxWaitTime(100 * time.Millisecond).Build(), plain
	})
}

func plain(ctx context.Context, _ *sim.Attempt) context.Context { return ctx }

// byUser states the class and the tenant.
func byUser(ctx context.Context, a *sim.Attempt) context.Context {
	return priority.ContextWithUser(priorityOf(a).AddTo(ctx), a.Request.Tenant)
}

// byLevel returns a function that states a level of the class. The library would draw the level
// from the same range, but without a seed.
func byLevel() describe {
	random := rand.New(rand.NewPCG(1, 16))
	return func(ctx context.Context, a *sim.Attempt) context.Context {
		p := priorityOf(a)
		return priority.ContextWithLevel(ctx, p.MinLevel()+random.IntN(p.MaxLevel()-p.MinLevel()+1))
	}
}

// priorityOf maps the four classes to the four highest priorities.
func priorityOf(a *sim.Attempt) priority.Priority {
	return priority.VeryHigh - priority.Priority(a.Class)
}
