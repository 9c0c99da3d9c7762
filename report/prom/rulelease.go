package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/lease/bucket"
)

// RuleLeases returns the metrics of the leases that rules spend, for any registry, including one from [NewRegistry]. Each
// scrape calls stats.
func RuleLeases(stats func() bucket.Stats) prometheus.Collector {
	return &ruleLeases{
		stats: stats,
		held:  prometheus.NewDesc("headgate_rule_leases", "Resources whose leases the rules of this process hold.", nil, nil),
		full: prometheus.NewDesc("headgate_rule_leases_full_total",
			"Requests that the fallback decided because the process held lease.max_leases leases.", nil, nil),
	}
}

type ruleLeases struct {
	stats      func() bucket.Stats
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
