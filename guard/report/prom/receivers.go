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
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_"+name, help, []string{"network", "address"}, nil)
	}
	return &receivers{
		get:     get,
		up:      desc("statsd_up", "0 if the last send of counters to the receiver failed, otherwise 1."),
		dropped: desc("statsd_dropped_lines_total", "Lines with counters that could not be sent to the receiver."),
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
