package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/throttle"
)

// Throttle is the state of a throttle.
type Throttle struct {
	Load
	throttler.Stats

	Config throttler.Config
}

// ThrottleOf returns the state of a stage.
func ThrottleOf(s *throttler.Stage) Throttle {
	t := Throttle{Config: s.Config()}
	t.Load, t.Stats = s.Load()
	return t
}

// throttleMetrics describes the metrics of Throttle.
type throttleMetrics struct {
	queued, refused, waited *prometheus.Desc
	gauges                  []throttleGauge
	waitSeconds             *prometheus.Desc
	predicted, measured     *prometheus.Desc
}

type throttleGauge struct {
	desc  *prometheus.Desc
	value func(*Throttle) float64
}

func newThrottleMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *throttleMetrics {
	gauge := func(d *prometheus.Desc, value func(*Throttle) float64) throttleGauge { return throttleGauge{d, value} }
	seconds := time.Duration.Seconds
	return &throttleMetrics{
		queued: desc("throttle_queued", "Requests that are queued for the service now.", "criticality"),
		refused: desc("throttle_refused_total", "Requests that the throttle refused, or in shadow mode would have refused.",
			"reason", "criticality"),
		waited:      desc("throttle_waited_total", "Requests that went to the service after a wait."),
		waitSeconds: desc("throttle_wait_seconds_total", "Sum of the waits of these requests."),
		predicted:   desc("throttle_predicted_work_seconds_total", "Predicted work of the requests that the service answered."),
		measured:    desc("throttle_work_seconds_total", "Work of these requests: CPU time that the service reports, or else time."),
		gauges: []throttleGauge{
			gauge(desc("throttle_shadow", "1 if the throttle is in shadow mode: its figures are then estimates. Otherwise 0."),
				func(t *Throttle) float64 { return float64(truth(t.Config.Mode == guard.Shadow)) }),
			gauge(desc("throttle_in_flight", "Requests that the service has now."),
				func(t *Throttle) float64 { return float64(t.InFlight) }),
			gauge(desc("throttle_concurrency", "Maximum of headgate_throttle_in_flight. 0 means that CPU time is bounded."),
				func(t *Throttle) float64 { return float64(t.Limit) }),
			gauge(desc("throttle_concurrency_advised", "Concurrency that auto_concurrency has found. 0 means that it is not known yet."),
				func(t *Throttle) float64 { return float64(t.Found) }),
			gauge(desc("throttle_work_in_flight_seconds", "Predicted work of the requests that the service has now."),
				func(t *Throttle) float64 { return seconds(t.CPU) }),
			gauge(desc("throttle_work_in_flight_max_seconds",
				"Maximum of headgate_throttle_work_in_flight_seconds. 0: requests are bounded."),
				func(t *Throttle) float64 { return seconds(t.Config.CPUInFlight) }),
			gauge(desc("throttle_queued_work_seconds", "Predicted work of the queued requests."),
				func(t *Throttle) float64 { return seconds(t.QueuedWork) }),
			gauge(desc("throttle_drain_rate", "Work that ends per second while requests are queued. 0 means that it is not known yet."),
				func(t *Throttle) float64 { return t.Rate }),
			gauge(desc("throttle_hung", "1 if the service answers nothing: it gets one request at a time. Otherwise 0."),
				func(t *Throttle) float64 { return float64(truth(t.Hung)) }),
			gauge(desc("throttle_tenants", "Tenants that were active in the last two seconds."),
				func(t *Throttle) float64 { return float64(t.Tenants) }),
		},
	}
}

func (m *throttleMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.queued, m.refused, m.waited, m.waitSeconds, m.predicted, m.measured} {
		ch <- d
	}
	for _, g := range m.gauges {
		ch <- g.desc
	}
}

func (m *throttleMetrics) collect(ch chan<- prometheus.Metric, t *Throttle) {
	for _, g := range m.gauges {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(t))
	}
	ch <- counter(m.waited, t.Waited)
	for desc, sum := range map[*prometheus.Desc]time.Duration{
		m.waitSeconds: t.WaitTime, m.predicted: t.Predicted, m.measured: t.Measured,
	} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, sum.Seconds())
	}
	for i := range throttle.ClassCount {
		class := throttle.Class(i).String()
		ch <- gauge(m.queued, int64(t.Queued[i]), class)
		for j := range t.Refused {
			ch <- counter(m.refused, t.Refused[j][i], (headgate.ThrottleFull + headgate.Reason(j)).String(), class)
		}
	}
}
