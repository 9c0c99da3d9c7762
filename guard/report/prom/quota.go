package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard/report"
)

// quotaMetrics describes the metrics of rules with a quota.
type quotaMetrics struct{ aboveSoft, metered, unwarned *prometheus.Desc }

func newQuotaMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *quotaMetrics {
	return &quotaMetrics{
		aboveSoft: desc("quota_above_soft_total", "Requests that passed above the soft limit of a quota.", "rule"),
		metered: desc("quota_metered_units_total", "Units beyond the included units of plans, when they were taken. Units that come back "+
			"later stay in the number.", "rule"),
		unwarned: desc("quota_events_dropped_total", "Events of soft limits that were not sent, because too many customers were above "+
			"them."),
	}
}

func (m *quotaMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.aboveSoft, m.metered, m.unwarned} {
		ch <- d
	}
}

// collect collects the metrics of a rule. Rules without a quota have none.
func (m *quotaMetrics) collect(ch chan<- prometheus.Metric, rule *report.RuleCounts) {
	if rule.Rule.Quota == "" {
		return
	}
	ch <- counter(m.aboveSoft, rule.AboveSoft, rule.Rule.Name)
	ch <- counter(m.metered, rule.Metered, rule.Rule.Name)
}

// collectUnwarned collects the dropped events, if a rule has a quota.
func (m *quotaMetrics) collectUnwarned(ch chan<- prometheus.Metric, r *report.Report) {
	for _, rule := range r.Rules() {
		if rule.Rule.Quota != "" {
			ch <- counter(m.unwarned, r.Unwarned())
			return
		}
	}
}
