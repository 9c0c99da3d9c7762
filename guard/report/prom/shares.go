package prom

import (
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
)

// Shares has the fair shares of clients in a capacity.
type Shares struct {
	fairshare.Shares

	// Shadow means that fair share decides but refuses nothing.
	Shadow bool
}

// shareMetrics describes the metrics of Shares.
type shareMetrics struct {
	seconds, anonymous *prometheus.Desc
	overall            []shareGauge
	units              []clientGauge
	totals             []clientCounter
}

// shareGauge is a gauge of all clients together.
type shareGauge struct {
	desc  *prometheus.Desc
	value func(*Shares) int64
}

// clientGauge is a gauge of each client, in units.
type clientGauge struct {
	desc  *prometheus.Desc
	value func(*fairshare.Share) int64
}

// clientCounter is a counter of each client, in units.
type clientCounter struct {
	desc  *prometheus.Desc
	value func(*fairshare.Share) uint64
}

func newShareMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *shareMetrics {
	const by = "client"
	type client = fairshare.Share
	overall := func(d *prometheus.Desc, value func(*Shares) int64) shareGauge { return shareGauge{d, value} }
	units := func(d *prometheus.Desc, value func(*client) int64) clientGauge { return clientGauge{d, value} }
	total := func(d *prometheus.Desc, value func(*client) uint64) clientCounter { return clientCounter{d, value} }
	return &shareMetrics{
		seconds: desc("share_cycle_seconds", "Length of a cycle, after which shares are computed again."),
		anonymous: desc("share_anonymous_total",
			"Requests refused because they named no client. In shadow mode, requests that would be refused."),
		overall: []shareGauge{
			overall(desc("share_capacity_units", "Units that all clients together may use in a cycle."),
				func(s *Shares) int64 { return s.Capacity }),
			overall(desc("share_shadow", "1 if fair share is in shadow mode and refuses nothing, otherwise 0."),
				func(s *Shares) int64 { return truth(s.Shadow) }),
			overall(desc("share_clients", "Clients with shares, including the client others."),
				func(s *Shares) int64 { return int64(len(s.Clients)) }),
			overall(desc("share_lasting_clients", "Clients that keep their default shares when new clients appear."),
				func(s *Shares) int64 { return lastingOf(s.Clients) }),
			overall(desc("share_last_admitted_units", "Units used in the last full cycle."),
				func(s *Shares) int64 { return s.LastAdmitted }),
			overall(desc("share_last_capacity_units", "Units that clients could have used in the last full cycle."),
				func(s *Shares) int64 { return s.LastCapacity }),
		},
		units: []clientGauge{
			units(desc("share_default_units", "A client's share when no client lends or borrows.", by),
				func(c *client) int64 { return c.Default }),
			units(desc("share_size_units", "A client's share in this cycle.", by),
				func(c *client) int64 { return c.Size }),
			units(desc("share_demand_units", "Units that a client requested in the last full cycle, including refused requests.", by),
				func(c *client) int64 { return c.Demand }),
			units(desc("share_borrowed_units", "Units by which a client's share is above its default share.", by),
				func(c *client) int64 { return c.Borrowed }),
			units(desc("share_lent_units", "Units by which a client's share is below its default share.", by),
				func(c *client) int64 { return c.Lent }),
		},
		totals: []clientCounter{
			total(desc("share_admitted_units_total", "Units of a client's admitted requests.", by),
				func(c *client) uint64 { return c.AdmittedCounter }),
			total(desc("share_refused_units_total",
				"Units of a client's refused requests. In shadow mode, units that would be refused.", by),
				func(c *client) uint64 { return c.RefusedTotal }),
		},
	}
}

func lastingOf(clients []fairshare.Share) (n int64) {
	for i := range clients {
		if clients[i].Lasting {
			n++
		}
	}
	return n
}

func (m *shareMetrics) describe(ch chan<- *prometheus.Desc) {
	ch <- m.seconds
	ch <- m.anonymous
	for _, g := range m.overall {
		ch <- g.desc
	}
	for _, g := range m.units {
		ch <- g.desc
	}
	for _, c := range m.totals {
		ch <- c.desc
	}
}

// collect collects the metrics of s, and the number of anonymous requests.
func (m *shareMetrics) collect(ch chan<- prometheus.Metric, s *Shares, anonymous uint64) {
	ch <- prometheus.MustNewConstMetric(m.seconds, prometheus.GaugeValue, s.Length.Seconds())
	ch <- counter(m.anonymous, anonymous)
	for _, g := range m.overall {
		ch <- gauge(g.desc, g.value(s))
	}
	for i := range s.Clients {
		c := &s.Clients[i]
		name := label(c.Client)
		for _, g := range m.units {
			ch <- gauge(g.desc, g.value(c), name)
		}
		for _, t := range m.totals {
			ch <- counter(t.desc, t.value(c), name)
		}
	}
}

// label converts a client's name to a label. Names from a guard are valid UTF-8. An
// invalid name from another source of Shares must not make the scrape fail.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// anonymousIn returns the number of decisions on requests without a client name.
func anonymousIn(counted *report.RuleCounts) uint64 {
	n := uint64(0)
	for _, c := range counted.Counts {
		if c.Reason == headgate.AnonymousClient {
			n += c.N
		}
	}
	return n
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
