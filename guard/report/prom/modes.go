package prom

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// allRules is the label of a mode for all rules. No rule has this name.
const allRules = "*"

// modeMetrics describes the modes that were set at run time.
type modeMetrics struct{ percent, end *prometheus.Desc }

func newModeMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *modeMetrics {
	return &modeMetrics{
		percent: desc("mode_override", "Part of the keys, in percent, that a mode of the run time applies to. Rule * stands for all rules.",
			"rule", "mode"),
		end: desc("mode_override_end_timestamp_seconds", "Time at which a mode of the run time ends by itself.", "rule"),
	}
}

func (m *modeMetrics) describe(ch chan<- *prometheus.Desc) {
	ch <- m.percent
	ch <- m.end
}

func (m *modeMetrics) collect(ch chan<- prometheus.Metric, each func(yield func(rule, mode string, percent int, until time.Time))) {
	each(func(rule, mode string, percent int, until time.Time) {
		rule = cmp.Or(rule, allRules)
		ch <- gauge(m.percent, int64(percent), rule, mode)
		if !until.IsZero() {
			ch <- gauge(m.end, until.Unix(), rule)
		}
	})
}
