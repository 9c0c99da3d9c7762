package prom

import "github.com/prometheus/client_golang/prometheus"

// Leases is the state of the capacity leases of headgate server.
type Leases struct {
	// Holders, Resources and Claims are known now.
	Holders, Resources, Claims int64
	// Streams are open now, and WaitingBytes have not been sent on them.
	Streams, WaitingBytes int64
	// Reports were received. Answers and Pushes are leases that were sent, and Refusals refused claims and reports. Closed
	// counts streams whose clients did not read.
	Reports, Answers, Pushes, Refusals, Closed uint64
	// Child says that the server has a parent. Connected is 1 while a stream to the parent is open. Opened counts these streams,
	// and Sent and Dropped the reports to the parent.
	Child                 bool
	Connected             int64
	Opened, Sent, Dropped uint64
	// Elected says that the server is one of a group. Master is 1 while it is the master. It became the master Won times, ceased to
	// be Lost times, and failed to reach etcd Failures times.
	Elected             bool
	Master              int64
	Won, Lost, Failures uint64
	// MarkWrites counts the transactions of etcd with marks.
	MarkWrites uint64
	// Limited says that headgate ctl limit sets capacities. LimitsConnected is 1 while they can be read, and LimitsRefused is the
	// number of limits without effect.
	Limited                        bool
	LimitsConnected, LimitsRefused int64
	// Totals has what is out of the resources of each entry of the file of a root.
	Totals []LeaseTotal
}

// LeaseTotal is the sum of all resources of one entry, in units a second or slots.
type LeaseTotal struct {
	Match                                 string
	Capacity, Wants, Has, Ledger, Unknown float64
}

// leaseMetrics describes the metrics of capacity leases.
type leaseMetrics struct {
	holders, resources, claims, streams, waiting, reports, sent, refusals, closed, connected, opened, up *prometheus.Desc
	master, elections, failures, marks                                                                   *prometheus.Desc
	limitsUp, limitsRefused, capacity, wants, has, ledger, unknown                                       *prometheus.Desc
}

func newLeaseMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *leaseMetrics {
	return &leaseMetrics{
		holders:       desc("lease_holders", "Holders with claims."),
		resources:     desc("lease_resources", "Resources with claims."),
		claims:        desc("lease_claims", "Claims of all holders."),
		streams:       desc("lease_streams", "Open streams of headgate.lease.v1."),
		waiting:       desc("lease_waiting_bytes", "Memory of leases that streams have not sent."),
		reports:       desc("lease_reports_total", "Reports of holders."),
		sent:          desc("lease_leases_total", "Leases for holders: answers to reports, and pushes.", "kind"),
		refusals:      desc("lease_refusals_total", "Refused claims and reports."),
		closed:        desc("lease_closed_streams_total", "Streams closed because their clients did not read."),
		connected:     desc("lease_parent_connected", "1 while a stream to the parent is open."),
		opened:        desc("lease_parent_streams_total", "Streams that a parent has accepted."),
		up:            desc("lease_parent_reports_total", "Reports to the parent: sent, and dropped without a stream.", "result"),
		master:        desc("lease_master", "1 while this server is the master of its group, 0 while it is not."),
		elections:     desc("lease_elections_total", "Times that this server became the master (won), and ceased to be (lost).", "result"),
		failures:      desc("lease_election_failures_total", "Failed attempts to reach etcd for elections."),
		limitsUp:      desc("lease_limits_connected", "1 while the limits of headgate ctl limit can be read."),
		limitsRefused: desc("lease_limits_refused", "Limits of headgate ctl limit that have no effect."),
		capacity:      desc("lease_capacity_units", "Capacity of the claimed resources of an entry, in units a second or slots.", "match"),
		wants:         desc("lease_wants_units", "Units that the holders of these resources want.", "match"),
		has:           desc("lease_has_units", "Units of the last leases of these resources.", "match"),
		ledger:        desc("lease_ledger_units", "Units of these resources that may be out, without the unknown ones.", "match"),
		unknown:       desc("lease_unknown_units", "Units that holders may have that have not reported since the start.", "match"),
		marks:         desc("lease_mark_writes_total", "Transactions of etcd with marks: what the next master counts as out."),
	}
}

func (m *leaseMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.holders, m.resources, m.claims, m.streams, m.waiting, m.reports, m.sent, m.refusals, m.closed, m.connected, m.opened, m.up,
		m.master, m.elections, m.failures, m.marks,
		m.limitsUp, m.limitsRefused, m.capacity, m.wants, m.has, m.ledger, m.unknown,
	} {
		ch <- d
	}
}

func (m *leaseMetrics) collect(ch chan<- prometheus.Metric, l *Leases) {
	ch <- gauge(m.holders, l.Holders)
	ch <- gauge(m.resources, l.Resources)
	ch <- gauge(m.claims, l.Claims)
	ch <- gauge(m.streams, l.Streams)
	ch <- gauge(m.waiting, l.WaitingBytes)
	ch <- counter(m.reports, l.Reports)
	ch <- counter(m.sent, l.Answers, "answer")
	ch <- counter(m.sent, l.Pushes, "push")
	ch <- counter(m.refusals, l.Refusals)
	ch <- counter(m.closed, l.Closed)
	if l.Limited {
		ch <- gauge(m.limitsUp, l.LimitsConnected)
		ch <- gauge(m.limitsRefused, l.LimitsRefused)
	}
	for i := range l.Totals {
		t := &l.Totals[i]
		for desc, value := range map[*prometheus.Desc]float64{
			m.capacity: t.Capacity, m.wants: t.Wants, m.has: t.Has, m.ledger: t.Ledger, m.unknown: t.Unknown,
		} {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, t.Match)
		}
	}
	if l.Elected {
		ch <- gauge(m.master, l.Master)
		ch <- counter(m.elections, l.Won, "won")
		ch <- counter(m.elections, l.Lost, "lost")
		ch <- counter(m.failures, l.Failures)
		ch <- counter(m.marks, l.MarkWrites)
	}
	if l.Child {
		ch <- gauge(m.connected, l.Connected)
		ch <- counter(m.opened, l.Opened)
		ch <- counter(m.up, l.Sent, "sent")
		ch <- counter(m.up, l.Dropped, "dropped")
	}
}
