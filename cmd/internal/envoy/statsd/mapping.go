package statsd

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
)

// mappings are the metrics of Envoy's rate limit service.
//
//go:embed mappings.yaml
var mappings string

// Mapping turns dotted names into metrics with labels, by the rules of statsd_exporter. It applies
// them once a name. A Mapping is safe for concurrent use.
type Mapping struct {
	mapper *mapper.MetricMapper

	mu    sync.Mutex
	known map[string]mapped  // by the dotted name; guarded by mu
	all   map[string]*series // those of known, by key; guarded by mu
	bytes int                // of the names in known; guarded by mu
}

// mapped is what a name maps to. A nil series is not shown.
type mapped struct {
	series *series
	scale  float64
}

// series is a metric with labels. Names that map to one series share it.
type series struct {
	desc   *prometheus.Desc
	is     prometheus.ValueType
	values []string // of the labels
}

// maxKnown and maxKnownBytes bound the names that are remembered. Sources bound their names too; this bound is for
// names that come and go with reloads.
const (
	maxKnown      = 1 << 17
	maxKnownBytes = 48 << 20
)

// maxMappings bounds the text of a mapping.
const maxMappings = 1 << 20

// NewMapping reads the rules of a mapping in YAML. "" is the mapping of Envoy's rate limit service. The
// fields timer_type, buckets and quantiles of older versions of statsd_exporter are read too.
func NewMapping(text string) (*Mapping, error) {
	if text == "" {
		text = mappings
	}
	if len(text) > maxMappings {
		return nil, fmt.Errorf("statsd: the mapping has %d bytes: use at most %d", len(text), maxMappings)
	}
	text, err := renewed(text)
	if err != nil {
		return nil, err
	}
	m := &mapper.MetricMapper{Logger: slog.New(slog.DiscardHandler)}
	if err := m.InitFromYAMLString(text); err != nil {
		return nil, errors.New("statsd: the mapping is invalid: " + err.Error())
	}
	return &Mapping{mapper: m, known: map[string]mapped{}, all: map[string]*series{}}, nil
}

// sum adds up the counters or gauges of a source by series.
func (m *Mapping) sum(from Source, kind mapper.MetricType) map[*series]float64 {
	sums := map[*series]float64{}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= maxKnown || m.bytes >= maxKnownBytes { // Not below: a series must not change within a sum.
		clear(m.known)
		clear(m.all)
		m.bytes = 0
	}
	from.Counters(func(name string, value uint64) {
		if s, scale := m.seriesOf(name, kind); s != nil {
			sums[s] += float64(value) * scale
		}
	})
	return sums
}

// seriesOf gives what the name of a counter or a gauge maps to, and the factor of its values. No name is both. The caller holds mu.
func (m *Mapping) seriesOf(name string, kind mapper.MetricType) (*series, float64) {
	if s, known := m.known[name]; known {
		return s.series, s.scale
	}
	s := m.apply(name, kind)
	if len(m.known) >= maxKnown || m.bytes >= maxKnownBytes {
		return s.series, s.scale
	}
	m.known[name] = s
	m.bytes += len(name)
	return s.series, s.scale
}

// apply maps a name. The caller holds mu.
func (m *Mapping) apply(name string, kind mapper.MetricType) mapped {
	found, labels, known := m.mapper.GetMapping(name, kind)
	metric, scale := name, 1.0
	if known {
		if found.Action == mapper.ActionTypeDrop {
			return mapped{}
		}
		if metric = found.Name; found.Scale.Set {
			scale = found.Scale.Val
		}
	} else {
		labels = nil
	}
	if metric = mapper.EscapeMetricName(metric); metric == "" {
		return mapped{}
	}
	names := slices.Sorted(maps.Keys(labels))
	id := key(metric, names, labels)
	if m.all[id] == nil {
		m.all[id] = newSeries(metric, names, labels, kind)
	}
	return mapped{m.all[id], scale}
}
