package prom

import "github.com/prometheus/client_golang/prometheus"

// Receiver is the state of a receiver of statsd lines.
type Receiver struct {
	// Network is tcp or udp, and Address is that of the receiver.
	Network, Address string
	// Dropped counts the lines that could not be sent.
	Dropped uint64
	// Failing is set if the last send failed.
	Failing bool
}

// receivers collects the metrics of receivers.
type receivers struct {
	get         func() []Receiver
	up, dropped *prometheus.Desc
}

// Receivers shows receivers of statsd lines.
func Receivers(get func() []Receiver) prometheus.Collector {
	labels := []string{"network", "address"}
	return &receivers{
		get: get,
		up:  prometheus.NewDesc("headgate_statsd_up", "1 if the last send of counters to the receiver succeeded, otherwise 0.", labels, nil),
		dropped: prometheus.NewDesc("headgate_statsd_dropped_lines_total", "Lines with counters that could not be sent to the receiver. "+
			"The counters themselves go on.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (r *receivers) Describe(ch chan<- *prometheus.Desc) { ch <- r.up; ch <- r.dropped }

// Collect implements prometheus.Collector.
func (r *receivers) Collect(ch chan<- prometheus.Metric) {
	for _, one := range r.get() {
		ch <- gauge(r.up, truth(!one.Failing), one.Network, one.Address)
		ch <- counter(r.dropped, one.Dropped, one.Network, one.Address)
	}
}
