package statsd

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
)

// Collector shows the counters of one source, and the gauges of another, to Prometheus. Values that map to
// one series add up.
type Collector struct {
	counters, gauges Source
	mapping          *Mapping
}

// NewCollector makes a Collector. It is for a registry of its own, because its metrics depend on the
// mapping.
func NewCollector(counters, gauges Source, m *Mapping) *Collector {
	return &Collector{counters, gauges, m}
}

// Describe sends nothing: the metrics are known when they are collected.
func (*Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends one metric for each series.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.collect(c.counters, mapper.MetricTypeCounter, to)
	c.collect(c.gauges, mapper.MetricTypeGauge, to)
}

func (c *Collector) collect(from Source, kind mapper.MetricType, to chan<- prometheus.Metric) {
	for s, value := range c.mapping.sum(from, kind) {
		to <- s.metricOf(value)
	}
}

// key is the same for the same series.
func key(metric string, names []string, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(metric)
	for _, name := range names {
		b.WriteByte(0)
		b.WriteString(name)
		b.WriteByte(0)
		b.WriteString(labels[name])
	}
	return b.String()
}

// newSeries describes a series. names are the labels in order.
func newSeries(metric string, names []string, labels map[string]string, kind mapper.MetricType) *series {
	s := &series{values: make([]string, len(names)), is: prometheus.CounterValue}
	for i, name := range names {
		s.values[i] = strings.ToValidUTF8(labels[name], "_")
	}
	help := "Counter of the rate limit service."
	if kind == mapper.MetricTypeGauge {
		help, s.is = "Gauge of the rate limit service.", prometheus.GaugeValue
	}
	s.desc = prometheus.NewDesc(metric, help, names, nil)
	return s
}

func (s *series) metricOf(value float64) prometheus.Metric {
	m, err := prometheus.NewConstMetric(s.desc, s.is, value, s.values...)
	if err != nil {
		return prometheus.NewInvalidMetric(s.desc, err)
	}
	return m
}
