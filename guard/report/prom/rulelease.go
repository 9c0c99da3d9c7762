package prom

import (
	"github.com/prometheus/client_golang/prometheus"
)

// RuleLeases returns the metrics of the leases that rules spend, for any registry, including one from [NewRegistry]. Each
// scrape calls stats.
func RuleLeases(stats func() LeaseStats) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc("headgate_"+name, help, nil, nil) }
	return &ruleLeases{
		stats: stats,
		held:  desc("rule_leases", "Resources whose leases the rules of this process hold."),
		full: desc("rule_leases_full_total",
			"Requests that the fallback decided because the process held lease.max_leases leases."),
	}
}

type ruleLeases struct {
	stats      func() LeaseStats
	held, full *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *ruleLeases) Describe(ch chan<- *prometheus.Desc) { ch <- c.held; ch <- c.full }

// Collect implements prometheus.Collector.
func (c *ruleLeases) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	ch <- gauge(c.held, int64(s.Leases))
	ch <- counter(c.full, s.Full)
}
