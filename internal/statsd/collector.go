package statsd

import (
	"slices"
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
	type sum struct {
		series *series
		value  float64
	}
	sums := map[string]*sum{}
	from.Counters(func(name string, value uint64) {
		s := c.mapping.seriesOf(name, kind)
		if s.metric == "" {
			return
		}
		key := s.key()
		if sums[key] == nil {
			sums[key] = &sum{series: s}
		}
		sums[key].value += float64(value) * s.scale
	})
	for _, one := range sums {
		to <- one.series.metricOf(one.value, kind)
	}
}

// names lists the labels in order.
func (s *series) names() []string {
	names := make([]string, 0, len(s.labels))
	for name := range s.labels {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// key is the same for the same series.
func (s *series) key() string {
	var b strings.Builder
	b.WriteString(s.metric)
	for _, name := range s.names() {
		b.WriteByte(0)
		b.WriteString(name)
		b.WriteByte(0)
		b.WriteString(s.labels[name])
	}
	return b.String()
}

func (s *series) metricOf(value float64, kind mapper.MetricType) prometheus.Metric {
	names := s.names()
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = strings.ToValidUTF8(s.labels[name], "_")
	}
	help, is := "Counter of the rate limit service.", prometheus.CounterValue
	if kind == mapper.MetricTypeGauge {
		help, is = "Gauge of the rate limit service.", prometheus.GaugeValue
	}
	desc := prometheus.NewDesc(s.metric, help, names, nil)
	m, err := prometheus.NewConstMetric(desc, is, value, values...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}
