package prom

import (
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/report"
)

// Shares is who has what of a capacity that clients share.
type Shares struct {
	fairshare.Shares

	// Shadow says that fair share decides and refuses nothing.
	Shadow bool
}

// shareMetrics describes what is shown of Shares.
type shareMetrics struct {
	seconds, anonymous *prometheus.Desc
	whole              []shareGauge
	units              []clientGauge
	totals             []clientCounter
}

// shareGauge is a gauge of all clients together.
type shareGauge struct {
	desc *prometheus.Desc
	of   func(*Shares) int64
}

// clientGauge is a gauge of each client, in units.
type clientGauge struct {
	desc *prometheus.Desc
	of   func(*fairshare.Share) int64
}

// clientCounter is a counter of each client, in units.
type clientCounter struct {
	desc *prometheus.Desc
	of   func(*fairshare.Share) uint64
}

func newShareMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *shareMetrics {
	const by = "client"
	type client = fairshare.Share
	whole := func(d *prometheus.Desc, of func(*Shares) int64) shareGauge { return shareGauge{d, of} }
	units := func(d *prometheus.Desc, of func(*client) int64) clientGauge { return clientGauge{d, of} }
	total := func(d *prometheus.Desc, of func(*client) uint64) clientCounter { return clientCounter{d, of} }
	return &shareMetrics{
		seconds: desc("share_cycle_seconds", "How long shares hold."),
		anonymous: desc("share_anonymous_total",
			"Requests that named no client, and were refused for it or, in shadow, would have been."),
		whole: []shareGauge{
			whole(desc("share_capacity_units", "What all clients together may use in a cycle."),
				func(s *Shares) int64 { return s.Capacity }),
			whole(desc("share_shadow", "Whether fair share decides and refuses nothing."),
				func(s *Shares) int64 { return truth(s.Shadow) }),
			whole(desc("share_clients", "Clients with shares, the bucket of all others among them."),
				func(s *Shares) int64 { return int64(len(s.Clients)) }),
			whole(desc("share_lasting_clients", "Clients whose default shares later names do not lessen."),
				func(s *Shares) int64 { return lastingOf(s.Clients) }),
			whole(desc("share_last_admitted_units", "What was used in the last full cycle."),
				func(s *Shares) int64 { return s.LastAdmitted }),
			whole(desc("share_last_capacity_units", "What might have been used in it."),
				func(s *Shares) int64 { return s.LastCapacity }),
		},
		units: []clientGauge{
			units(desc("share_default_units", "A client's share while nobody lends or borrows.", by),
				func(c *client) int64 { return c.Default }),
			units(desc("share_size_units", "A client's share in this cycle.", by),
				func(c *client) int64 { return c.Size }),
			units(desc("share_demand_units", "What a client asked for in the last full cycle, refused attempts included.", by),
				func(c *client) int64 { return c.Demand }),
			units(desc("share_borrowed_units", "What a client's share is above its default share.", by),
				func(c *client) int64 { return c.Borrowed }),
			units(desc("share_lent_units", "What a client's share is below its default share.", by),
				func(c *client) int64 { return c.Lent }),
		},
		totals: []clientCounter{
			total(desc("share_admitted_units_total", "Units of a client that passed.", by),
				func(c *client) uint64 { return c.AdmittedCounter }),
			total(desc("share_refused_units_total", "Units of a client that were refused or, in shadow, would have been.", by),
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
	for _, g := range m.whole {
		ch <- g.desc
	}
	for _, g := range m.units {
		ch <- g.desc
	}
	for _, c := range m.totals {
		ch <- c.desc
	}
}

// collect shows s, and how many requests were anonymous.
func (m *shareMetrics) collect(ch chan<- prometheus.Metric, s *Shares, anonymous uint64) {
	ch <- prometheus.MustNewConstMetric(m.seconds, prometheus.GaugeValue, s.Length.Seconds())
	ch <- counter(m.anonymous, anonymous)
	for _, g := range m.whole {
		ch <- gauge(g.desc, g.of(s))
	}
	for i := range s.Clients {
		c := &s.Clients[i]
		name := label(c.Client)
		for _, g := range m.units {
			ch <- gauge(g.desc, g.of(c), name)
		}
		for _, t := range m.totals {
			ch <- counter(t.desc, t.of(c), name)
		}
	}
}

// label gives a client's name as a label. Those of a guard are UTF-8; what another
// source of Shares has not cleaned must not end a scrape.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// anonymousIn counts the decisions on requests that named no client.
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
