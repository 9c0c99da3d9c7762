package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/store/breaker"
)

// sharedMetrics describes the metrics of a Shared.
type sharedMetrics struct {
	up, waiting, failed, offset, bound *prometheus.Desc
	counters                           []nodeCounter
	units, denied                      *prometheus.Desc
}

// nodeCounter is a counter of each node.
type nodeCounter struct {
	desc  *prometheus.Desc
	value func(*report.Node) uint64
}

func newSharedMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *sharedMetrics {
	counter := func(name, help string, value func(*report.Node) uint64) nodeCounter {
		return nodeCounter{desc("store_"+name, help, "node"), value}
	}
	return &sharedMetrics{
		up:      desc("store_up", "1 if this process sends queries to the server, 0 while its circuit breaker is open.", "node"),
		waiting: desc("store_waiting", "Decisions that wait for the next call to a server.", "node"),
		failed:  desc("store_last_failure_timestamp_seconds", "Time of the last call to a server without an answer.", "node"),
		offset: desc("store_clock_offset_seconds",
			"Seconds by which a server's clock is ahead of this machine's clock, if the store needs it.", "node"),
		bound: desc("store_clock_error_seconds", "Maximum error of headgate_store_clock_offset_seconds.", "node"),
		counters: []nodeCounter{
			counter("calls_total", "Calls to a server. A call may have many decisions.", func(n *report.Node) uint64 { return n.Calls }),
			counter("decisions_total", "Limits decided by a server.", func(n *report.Node) uint64 { return n.Decisions }),
			counter("failures_total", "Calls without an answer. The server may have counted their units.",
				func(n *report.Node) uint64 { return n.Failures }),
			counter("left_alone_total", "Decisions without a call, because the server was known to be unreachable.",
				func(n *report.Node) uint64 { return n.Refused }),
			counter("given_up_total", "Openings of the circuit breaker of a server.", func(n *report.Node) uint64 { return n.Opened }),
			counter("conflicts_total", "Writes that failed because another process wrote first.",
				func(n *report.Node) uint64 { return n.Conflicts }),
			counter("contended_total", "Decisions that failed after too many conflicts.",
				func(n *report.Node) uint64 { return n.Exhausted }),
			counter("evictions_total", "Items that a server reports as evicted. Counts in evicted items start at 0 again.",
				func(n *report.Node) uint64 { return n.Evictions }),
		},
		units:  desc("prefetch_units_total", "Prefetched units, by state: granted, spent, expired or returned.", "state"),
		denied: desc("denied_locally_total", "Requests refused from memory because their key is known to be over its limit."),
	}
}

func (m *sharedMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.up, m.waiting, m.failed, m.offset, m.bound, m.units, m.denied} {
		ch <- d
	}
	for _, c := range m.counters {
		ch <- c.desc
	}
}

func (m *sharedMetrics) collect(ch chan<- prometheus.Metric, s report.Shared) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		up := int64(0)
		if n.State == breaker.Closed {
			up = 1
		}
		ch <- gauge(m.up, up, n.Name)
		ch <- gauge(m.waiting, n.Waiting, n.Name)
		for _, c := range m.counters {
			ch <- counter(c.desc, c.value(n), n.Name)
		}
		if !n.LastFailure.At.IsZero() {
			ch <- gauge(m.failed, n.LastFailure.At.Unix(), n.Name)
		}
		if n.ClockKnown {
			ch <- prometheus.MustNewConstMetric(m.offset, prometheus.GaugeValue, n.ClockOffset.Seconds(), n.Name)
			ch <- prometheus.MustNewConstMetric(m.bound, prometheus.GaugeValue, n.ClockBound.Seconds(), n.Name)
		}
	}
	if s.Ahead == nil {
		return
	}
	ch <- counter(m.units, s.Ahead.Granted, "granted")
	ch <- counter(m.units, s.Ahead.Spent, "spent")
	ch <- counter(m.units, s.Ahead.Expired, "expired")
	ch <- counter(m.units, s.Ahead.Returned, "returned")
	ch <- counter(m.denied, s.Ahead.Denied)
}
