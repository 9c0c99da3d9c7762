package statsd

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
)

// Timer shows times of one name as a histogram. It is safe for concurrent use.
type Timer struct {
	histogram prometheus.Histogram
	scale     float64
}

// NewTimer makes the histogram that the mapping gives to a name. Its values are milliseconds, unless
// the mapping scales them.
func (m *Mapping) NewTimer(name string) *Timer {
	t := &Timer{scale: 1}
	o := prometheus.HistogramOpts{Name: mapper.EscapeMetricName(name), Help: "Time of a call.", Buckets: prometheus.DefBuckets}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, labels, mapped := m.mapper.GetMapping(name, mapper.MetricTypeObserver); mapped {
		o.Name, o.ConstLabels = mapper.EscapeMetricName(found.Name), labels
		if found.HistogramOptions != nil && len(found.HistogramOptions.Buckets) > 0 {
			o.Buckets = found.HistogramOptions.Buckets
		}
		if found.Scale.Set {
			t.scale = found.Scale.Val
		}
	}
	t.histogram = prometheus.NewHistogram(o)
	return t
}

// InMilliseconds makes the values milliseconds, whatever the mapping scales. Call it before the first
// Observe.
func (t *Timer) InMilliseconds() { t.scale = 1 }

// Observe adds one time.
func (t *Timer) Observe(d time.Duration) {
	t.histogram.Observe(float64(d) / float64(time.Millisecond) * t.scale)
}

// Describe and Collect make the Timer a collector.
func (t *Timer) Describe(to chan<- *prometheus.Desc) { t.histogram.Describe(to) }

// Collect sends the histogram.
func (t *Timer) Collect(to chan<- prometheus.Metric) { t.histogram.Collect(to) }
