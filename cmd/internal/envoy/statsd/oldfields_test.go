package statsd

import (
	"strings"
	"testing"

	"github.com/prometheus/statsd_exporter/pkg/mapper"
)

// TestOldFields reads mappings for older versions of statsd_exporter.
func TestOldFields(t *testing.T) {
	for text, want := range map[string]mapper.ObserverType{
		"mappings: [{match: a.*, name: x, timer_type: histogram}]":                                            mapper.ObserverTypeHistogram,
		"mappings: [{match: a.*, name: x, timer_type: histogram, observer_type: summary}]":                    mapper.ObserverTypeSummary,
		"mappings: [{match: a.*, name: x, timer_type: histogram, buckets: [1, 2]}]":                           mapper.ObserverTypeHistogram,
		"mappings: [{match: a.*, name: x, observer_type: summary, quantiles: [{quantile: 0.9, error: 0.1}]}]": mapper.ObserverTypeSummary,
		"defaults: {timer_type: histogram}\nmappings: [{match: a.*, name: x}]":                                mapper.ObserverTypeHistogram,
	} {
		m, err := NewMapping(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		found, _, known := m.mapper.GetMapping("a.b", mapper.MetricTypeObserver)
		if !known || found.Name != "x" || found.ObserverType != want {
			t.Errorf("%s: got %+v, want the name x and the type %s", text, found, want)
			continue
		}
		if strings.Contains(text, "buckets") && len(found.HistogramOptions.Buckets) != 2 {
			t.Errorf("%s: got the buckets %v, want two", text, found.HistogramOptions.Buckets)
		}
		if strings.Contains(text, "quantiles") && len(found.SummaryOptions.Quantiles) != 1 {
			t.Errorf("%s: got the quantiles %v, want one", text, found.SummaryOptions.Quantiles)
		}
	}
	for text, want := range map[string]string{
		"mappings: [{match: a.*, name: x, buckets: [1], histogram_options: {buckets: [2]}}]": "buckets",
		"mappings: [{match: a.*, name: x, timer_typ: histogram}]":                            "timer_typ",
		"mappings: {timer_type: histogram}":                                                  "cannot unmarshal",
		"mappings: [timer_type]":                                                             "timer_type",
		"timer_type: histogram":                                                              "timer_type",
		"{":                                                                                  "invalid",
	} {
		if _, err := NewMapping(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error about %s", text, err, want)
		}
	}
}
