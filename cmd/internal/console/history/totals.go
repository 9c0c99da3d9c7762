package history

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/console/history/ring"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/throttle"
)

// total is a series of the whole instance.
type total struct {
	series ring.Series
	window window
	last   uint64
}

// totals are the series of the whole instance. The sampler updates each of them in each second.
type totals struct {
	all []*total

	requests, passed, refused, wouldRefuse, noRule, abandoned *total
	refusedBy                                                 [causeCount]*total
	serviceFailed                                             *total
	answers                                                   []*total // by report.CodeClasses
	failures                                                  []*total // by report.UpstreamErrors
	inFlight, waiting                                         *total
	shareCapacity, shareAdmitted                              *total
	throttle                                                  throttleTotals
}

// throttleTotals are the series of the throttle.
type throttleTotals struct {
	inFlight, concurrency, queuedWork, waited, waitMillis *total
	queued, refused                                       [throttle.ClassCount]*total
	reasons                                               [throttleReasons]*total
}

// throttleReasons is the number of reasons for which the throttle refuses.
const throttleReasons = len(throttler.Stats{}.Refused)

// A cause is what refuses a request.
type cause uint8

const (
	byFairShare cause = iota
	byRules
	byBans
	byQuotas
	byThrottle
	undecided
	byOther
	causeCount
)

var causeNames = [causeCount]string{"fair_share", "rules", "bans", "quotas", "throttle", "undecided", "other"}

func newTotals() *totals {
	t := new(totals)
	t.requests, t.passed, t.refused = t.counts("requests"), t.counts("passed"), t.counts("refused")
	t.wouldRefuse, t.noRule, t.abandoned = t.counts("would_refuse"), t.counts("no_rule"), t.counts("abandoned")
	for c, name := range causeNames {
		t.refusedBy[c] = t.counts("refused." + name)
	}
	t.serviceFailed = t.counts("service_failed")
	for _, class := range report.CodeClasses() {
		t.answers = append(t.answers, t.counts("answers."+class.String()))
	}
	for _, kind := range report.UpstreamErrors() {
		t.failures = append(t.failures, t.counts("upstream_errors."+kind.String()))
	}
	t.inFlight, t.waiting = t.gauge("in_flight"), t.gauge("waiting")
	t.shareCapacity, t.shareAdmitted = t.gauge("fair_share.capacity"), t.counts("fair_share.admitted")
	t.addThrottle()
	return t
}

func (t *totals) addThrottle() {
	h := &t.throttle
	h.inFlight, h.concurrency = t.gauge("throttle.in_flight"), t.gauge("throttle.concurrency")
	h.queuedWork = t.gauge("throttle.queued_work_ms")
	h.waited, h.waitMillis = t.counts("throttle.waited"), t.counts("throttle.wait_ms")
	for class := range h.queued {
		name := throttle.Class(class).String()
		h.queued[class], h.refused[class] = t.gauge("throttle.queued."+name), t.counts("throttle.refused."+name)
	}
	for i := range h.reasons {
		h.reasons[i] = t.counts("throttle.reason." + throttleReason(i))
	}
}

// throttleReason names a reason of throttler.Stats.
func throttleReason(i int) string { return (headgate.ThrottleFull + headgate.Reason(i)).String() }

func (t *totals) counts(name string) *total {
	made := &total{series: ring.Series{Name: ring.Name{Metric: name}, Pinned: true}}
	t.all = append(t.all, made)
	return made
}

func (t *totals) gauge(name string) *total {
	made := t.counts(name)
	made.series.Gauge = true
	return made
}
