package app

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/throttle"
)

// throttle returns the state of the throttle, and false when it is off.
func (r *rules) promThrottle() (prom.Throttle, bool) {
	settings, stage := r.config.Load().Throttle, r.store.Throttle()
	if settings == nil || settings.Mode == guard.Off || stage == nil {
		return prom.Throttle{}, false
	}
	t := prom.ThrottleOf(stage)
	t.Config = *settings // The stage may be of a reload that another part has refused.
	return t, true
}

// throttleStatus returns nil when the throttle is off.
func (r *rules) throttleStatus() *admin.ThrottleStatus {
	t, ok := r.promThrottle()
	if !ok {
		return nil
	}
	s := &admin.ThrottleStatus{
		Mode: t.Config.Mode.String(), Concurrency: t.Limit, AdvisedConcurrency: t.Found, CPUInFlightSeconds: t.Config.CPUInFlight.Seconds(),
		Hung: t.Hung, InFlight: t.InFlight, WorkInFlightSeconds: t.CPU.Seconds(),
		QueuedWorkSeconds: t.QueuedWork.Seconds(), DrainRate: t.Rate,
		Tenants: t.Tenants, Waited: t.Waited, WaitSeconds: t.WaitTime.Seconds(),
		PredictedWorkSeconds: t.Predicted.Seconds(), WorkSeconds: t.Measured.Seconds(),
		Queued: map[string]int{}, Refused: map[string]uint64{}, RefusedByClass: map[string]uint64{},
	}
	for i, n := range t.Queued {
		s.Queued[throttle.Class(i).String()] = n
	}
	for i, classes := range t.Refused {
		for class, n := range classes {
			s.Refused[(headgate.ThrottleFull + headgate.Reason(i)).String()] += n
			s.RefusedByClass[throttle.Class(class).String()] += n
		}
	}
	return s
}
