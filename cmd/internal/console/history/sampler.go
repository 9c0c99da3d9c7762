package history

import (
	"time"

	"github.com/headgate/headgate/cmd/internal/console/history/ring"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
)

// Sources are the counters that a sampler reads. Reading them must not wait for a server.
type Sources struct {
	Report *report.Report
	Shares func() (fairshare.Shares, bool)
	// Throttle gives the stage; nil when there was never a throttle.
	Throttle func() *throttler.Stage
	// Store gives the state of a shared store.
	Store func() report.Shared
	// Server says that the instance answers decisions and forwards nothing.
	Server bool
}

// sampler turns counters into series, rates and episodes. It is not safe for concurrent use.
type sampler struct {
	from Sources
	ring *ring.Ring
	kept bool // there is a history

	end      int64 // the end of the last second
	sequence uint64
	begun    int64 // since when the windows count
	part     int   // the present part of the windows

	counters report.Counters
	slots    []*slot // in the order of counters, with rules of mode off: their counters stay
	totals   *totals
	clients  clients
	nodes    []*node

	serviceTime, requestTime durations
	// throttled are the counts of the throttle in this second. load and stats are its present state.
	throttled throttledNow
}

func newSampler(from Sources, series int) *sampler {
	return &sampler{from: from, ring: ring.New(series), kept: series > 0, totals: newTotals()}
}

// tick samples what has happened since the last tick. c is the configuration in effect.
func (s *sampler) tick(now time.Time, c *config.Config) {
	end := now.Unix()
	seconds := s.ring.Advance(end)
	if seconds == 0 {
		return // The next second has these counts.
	}
	s.turnWindows(end)
	s.end, s.sequence = end, s.sequence+uint64(seconds)
	s.follow()
	s.sampleThrottle(c)
	sums := s.sampleRules()
	s.sampleShares()
	s.sampleStore()
	s.sampleTraffic(&sums)
}

// turnWindows begins the part of all windows that a second belongs to.
func (s *sampler) turnWindows(end int64) {
	was, is := (s.end-1)/partSeconds, (end-1)/partSeconds
	if s.end == 0 || end <= s.end || is-was >= windowParts {
		s.begun = end - 1
		was = is - windowParts
	}
	for part := was + 1; part <= is; part++ {
		s.part = int(part % windowParts)
		s.clear(s.part)
	}
}

// clear empties a part of all windows.
func (s *sampler) clear(part int) {
	for _, one := range s.slots {
		for i := range one.window {
			one.window[i][part] = 0
		}
	}
	for _, one := range s.totals.all {
		one.window[part] = 0
	}
	s.serviceTime.clear(part)
	s.requestTime.clear(part)
	for _, one := range s.clients.all {
		for i := range one.window {
			one.window[i][part] = 0
		}
	}
	for _, one := range s.nodes {
		for i := range one.window {
			one.window[i][part] = 0
		}
	}
}

// seconds is the length of the windows.
func (s *sampler) seconds() int64 {
	if s.end == 0 {
		return 0
	}
	return s.end - max(s.begun, ((s.end-1)/partSeconds-windowParts+1)*partSeconds)
}

// follow takes the rules of the counters in force. A rule keeps its slot by its name.
func (s *sampler) follow() {
	counters := s.from.Report.Counters()
	if counters == s.counters {
		return
	}
	known := make(map[string]*slot, len(s.slots))
	for _, one := range s.slots {
		known[one.name] = one
	}
	next := make([]*slot, counters.Len())
	for i := range next {
		rule, stage := counters.At(i)
		one, found := known[rule.Name]
		if !found || one.stage != stage {
			one = newSlot(rule.Name)
		}
		delete(known, rule.Name) // A stage and a rule with one name have slots of their own.
		one.rule, one.stage, one.off = rule, stage, rule.Mode == guard.Off
		next[i] = one
	}
	s.counters, s.slots = counters, next
}

// ruleSums are the sums over all rules and stages of a second.
type ruleSums struct {
	decided, wouldRefuse uint64
	refusedBy            [causeCount]uint64
}

func (s *sampler) sampleRules() (all ruleSums) {
	for i, one := range s.slots {
		now := s.counters.Sums(i)
		d := one.differ(&now)
		if one.stage && one.name == throttler.Name {
			s.throttled.correct(one.rule.Mode, &d)
		}
		for m, n := range d.counts {
			if n > 0 {
				one.window[m].add(s.part, n)
				s.count(&one.series[m], n)
			}
		}
		if d.counts[refused]+d.counts[wouldRefuse] > 0 {
			one.run.refused(s.end)
		}
		all.add(one, &d)
	}
	return all
}

// count counts in the history.
func (s *sampler) count(series *ring.Series, n uint64) {
	if s.kept {
		s.ring.Add(series, n)
	}
}

// add divides the refusals of a rule by cause.
func (a *ruleSums) add(s *slot, d *deltas) {
	if s.rule.TrialOf != "" {
		return // A trial has no effect: what it would refuse is in no sum.
	}
	a.decided += d.counts[passed] + d.counts[refused]
	a.wouldRefuse += d.counts[wouldRefuse]
	n := d.counts[refused]
	if n == 0 {
		return
	}
	banned := min(d.banned, n)
	unknown := min(d.undecided, n-banned)
	a.refusedBy[byBans] += banned
	a.refusedBy[undecided] += unknown
	a.refusedBy[s.cause()] += n - banned - unknown
}

// cause is what a refusal of the rule or stage counts as.
func (s *slot) cause() cause {
	switch {
	case s.stage && s.name == guard.FairShareName:
		return byFairShare
	case s.stage && s.name == throttler.Name:
		return byThrottle
	case s.stage && s.name == guard.SourceName:
		return undecided
	case s.rule.Quota != "":
		return byQuotas
	default:
		return byRules
	}
}

// sampleTraffic samples the front, and what follows from all rules.
func (s *sampler) sampleTraffic(sums *ruleSums) {
	t, traffic := s.totals, &s.from.Report.Traffic
	all := uint64(0)
	for i, class := range report.CodeClasses() {
		all += s.counted(t.answers[i], traffic.Answers(class))
	}
	for i, kind := range report.UpstreamErrors() {
		s.counted(t.failures[i], traffic.UpstreamFailures(kind))
	}
	noRule := s.counted(t.noRule, s.from.Report.Unmatched())
	s.counted(t.abandoned, s.from.Report.Abandoned())
	if s.from.Server {
		all = noRule + sums.decided
	}
	refusals := uint64(0)
	for c, n := range sums.refusedBy {
		s.add(t.refusedBy[c], n)
		refusals += n
	}
	s.add(t.requests, all)
	s.add(t.refused, min(refusals, all))
	s.add(t.passed, all-min(refusals, all))
	s.add(t.wouldRefuse, sums.wouldRefuse)
	s.counted(t.serviceFailed, traffic.AnswersFrom(report.OriginService, report.Class5xx)+traffic.ServiceFailures())
	s.serviceTime.sample(&traffic.ServiceTime, s.part)
	s.requestTime.sample(&traffic.RequestTime, s.part)
	s.set(t.inFlight, traffic.InFlight.Load())
	s.set(t.waiting, traffic.Waiting.Load())
}

// counted adds what a counter has counted since the last second.
func (s *sampler) counted(t *total, now uint64) uint64 {
	n := since(now, &t.last)
	s.add(t, n)
	return n
}

func (s *sampler) add(t *total, n uint64) {
	if n > 0 {
		t.window.add(s.part, n)
		s.count(&t.series, n)
	}
}

// set sets a gauge. Its last is the present value.
func (s *sampler) set(t *total, n int64) {
	t.last = uint64(max(n, 0))
	if s.kept {
		s.ring.Set(&t.series, t.last)
	}
}

// rate is the mean of a total in a second.
func (s *sampler) rate(t *total) float64 { return t.window.rate(s.seconds()) }
