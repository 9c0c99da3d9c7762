package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard"
)

// outcomeMetrics describes the metrics of rules that need the end of requests.
type outcomeMetrics struct{ inFlight, returned, charged, estimates, stated, unreturned *prometheus.Desc }

func newOutcomeMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *outcomeMetrics {
	return &outcomeMetrics{
		inFlight:  desc("rule_in_flight", "Requests that this instance has in flight under a rule with in_flight.", "rule"),
		returned:  desc("rule_units_returned_total", "Units that the outcomes of requests gave back (count, settle, bytes).", "rule"),
		charged:   desc("rule_units_charged_total", "Units charged beyond the estimates of requests (settle).", "rule"),
		estimates: desc("rule_estimates_total", "Requests whose answer stated no valid cost, so that the estimate stays (settle).", "rule"),
		stated: desc("rule_stated_limits_total", "Requests under a rule with limits_from, by the limit that decided: used is that of the "+
			"request. "+
			"absent, invalid and beyond (too many different ones) are the limits of the rule.", "rule", "limit"),
		unreturned: desc("unreturned_requests_total", "Requests whose unused units could not be returned to the store, because too many "+
			"waited. The units stay counted until they expire."),
	}
}

func (m *outcomeMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.inFlight, m.returned, m.charged, m.estimates, m.stated, m.unreturned} {
		ch <- d
	}
}

// collect collects the metrics of a rule. Rules without these settings have none.
func (m *outcomeMetrics) collect(ch chan<- prometheus.Metric, g *guard.Guard, r *guard.Rule) {
	if r.InFlight > 0 {
		ch <- gauge(m.inFlight, g.InFlight(r.Name), r.Name)
	}
	for kind := guard.StatedUsed; r.LimitsFrom.Most.Limit.HasPeriod() && kind <= guard.StatedBeyond; kind++ {
		ch <- counter(m.stated, g.Stated(r.Name, kind), r.Name, kind.String())
	}
	if len(r.Count) == 0 && !r.Settles() {
		return
	}
	s := g.Settled(r.Name)
	ch <- counter(m.returned, s.Returned, r.Name)
	if r.Settles() {
		ch <- counter(m.charged, s.Charged, r.Name)
		ch <- counter(m.estimates, s.Estimates, r.Name)
	}
}
