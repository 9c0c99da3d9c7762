package statsd

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"

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
	known map[string]*series // by the dotted name; guarded by mu
}

// series is what a name maps to. An empty metric is not shown.
type series struct {
	metric string
	labels map[string]string
	scale  float64
}

// maxKnown bounds the names that are remembered. Sources bound their names too; this bound is for
// names that come and go with reloads.
const maxKnown = 1 << 17

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
	return &Mapping{mapper: m, known: map[string]*series{}}, nil
}

// seriesOf gives what the name of a counter or a gauge maps to. No name is both.
func (m *Mapping) seriesOf(name string, kind mapper.MetricType) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, known := m.known[name]; known {
		return s
	}
	if len(m.known) >= maxKnown {
		clear(m.known)
	}
	s := m.apply(name, kind)
	m.known[name] = s
	return s
}

func (m *Mapping) apply(name string, kind mapper.MetricType) *series {
	found, labels, mapped := m.mapper.GetMapping(name, kind)
	switch {
	case !mapped:
		return &series{metric: mapper.EscapeMetricName(name), scale: 1}
	case found.Action == mapper.ActionTypeDrop:
		return &series{}
	}
	s := &series{metric: mapper.EscapeMetricName(found.Name), labels: labels, scale: 1}
	if found.Scale.Set {
		s.scale = found.Scale.Val
	}
	return s
}
