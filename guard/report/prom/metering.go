package prom

import (
	"github.com/prometheus/client_golang/prometheus"
)

// meteringMetrics describes the metrics of metering.
type meteringMetrics struct {
	records, faults, bytes, others, lost,
	waiting *prometheus.Desc
	delivered, dropped, setAside, failures *prometheus.Desc
	pending, pendingBytes, oldest          *prometheus.Desc
}

func newMeteringMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *meteringMetrics {
	const output = "output"
	return &meteringMetrics{
		records:      desc("metering_records_total", "Records of usage that were written to the journal."),
		faults:       desc("metering_journal_faults_total", "Failed attempts to write or sync the journal."),
		bytes:        desc("metering_journal_bytes", "Size of the journal."),
		others:       desc("metering_others_total", "Changes that were summed under others, because a minute had too many customers."),
		lost:         desc("metering_lost_total", "Changes that were not counted, because the journal could not be written for too long."),
		waiting:      desc("metering_waiting_records", "Records in memory that the journal does not have."),
		delivered:    desc("metering_delivered_total", "Records that an output has delivered.", output),
		dropped:      desc("metering_dropped_total", "Records that were lost before an output had delivered them.", output),
		setAside:     desc("metering_set_aside_total", "Records that the endpoint refuses and that were written to a file.", output),
		failures:     desc("metering_failures_total", "Failed attempts to deliver.", output),
		pending:      desc("metering_pending_records", "Records that an output has not delivered yet.", output),
		pendingBytes: desc("metering_pending_bytes", "Size of these records in the journal.", output),
		oldest:       desc("metering_oldest_seconds", "Age of the oldest record that an output has tried to deliver, or 0.", output),
	}
}

func (m *meteringMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.records, m.faults, m.bytes, m.others, m.lost, m.waiting, m.delivered, m.dropped, m.setAside,
		m.failures, m.pending, m.pendingBytes, m.oldest,
	} {
		ch <- d
	}
}

func (m *meteringMetrics) collect(ch chan<- prometheus.Metric, s *MeteringStats) {
	ch <- counter(m.records, s.Journal.Written)
	ch <- counter(m.faults, s.Journal.Faults)
	ch <- gauge(m.bytes, s.Journal.Bytes)
	ch <- counter(m.others, s.Others)
	ch <- counter(m.lost, s.Lost)
	ch <- gauge(m.waiting, s.Waiting)
	for i := range s.Outputs {
		o := &s.Outputs[i]
		ch <- counter(m.delivered, o.Acknowledged, o.Name)
		ch <- counter(m.dropped, o.Dropped, o.Name)
		ch <- counter(m.setAside, o.SetAside, o.Name)
		ch <- counter(m.failures, o.Failures, o.Name)
		ch <- gauge(m.pending, int64(o.Pending), o.Name)
		ch <- gauge(m.pendingBytes, o.PendingBytes, o.Name)
		ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, o.Oldest.Seconds(), o.Name)
	}
}
