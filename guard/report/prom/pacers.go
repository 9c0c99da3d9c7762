package prom

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/pace"
)

const (
	// maxProviders limits the providers with their own series. A program that makes a
	// pacer for each new name must not fill Prometheus.
	maxProviders = 1000
	// maxProviderName limits the length of a label, in bytes.
	maxProviderName = 128
	// otherProviders is the label for all providers beyond maxProviders.
	otherProviders = "others"
)

// Pacers returns the metrics of pacers, for any registry, including one from
// [NewRegistry]. Each scrape calls stats, which returns the Stats of all pacers of the
// program. The order must stay the same, with new pacers last. Pacers of one provider
// appear as one, with the sums of their counts.
//
// The label provider is pace.Config.Provider. The first 1000 providers have their own
// series, and all further providers appear as others.
func Pacers(stats func() []pace.Stats) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_pace_"+name, help, append([]string{"provider"}, labels...), nil)
	}
	return &pacers{
		stats:    stats,
		gauges:   paceGauges(desc),
		counters: paceCounters(desc),
		waits:    desc("wait_seconds", "Waiting time of callers that got their units after a wait."),
		refused: desc("refused_total",
			"Callers refused at once, because too many callers were waiting or the cost was above a window.", "reason"),
	}
}

// pacers builds the metrics of pacers at the time of a scrape.
type pacers struct {
	stats          func() []pace.Stats
	gauges         []paceGauge
	counters       []paceCounter
	waits, refused *prometheus.Desc
}

// paceGauge is a gauge of each provider.
type paceGauge struct {
	desc  *prometheus.Desc
	value func(*pace.Stats) float64
}

// paceCounter is a counter of each provider.
type paceCounter struct {
	desc  *prometheus.Desc
	value func(*pace.Stats) uint64
}

// describer describes a metric of each provider.
type describer func(name, help string, labels ...string) *prometheus.Desc

func paceGauges(desc describer) []paceGauge {
	integer := func(d *prometheus.Desc, value func(*pace.Stats) int64) paceGauge {
		return paceGauge{d, func(s *pace.Stats) float64 { return float64(value(s)) }}
	}
	return []paceGauge{
		integer(desc("limit", "Units that all instances together may take in a window."),
			func(s *pace.Stats) int64 { return s.Limit }),
		{
			desc("window_seconds", "Length of a window."),
			func(s *pace.Stats) float64 { return s.Per.Seconds() },
		},
		integer(desc("instances", "Number of instances that share the limit."),
			func(s *pace.Stats) int64 { return int64(s.Instances) }),
		integer(desc("part", "Units of the present window that this instance may use."),
			func(s *pace.Stats) int64 { return s.Part }),
		integer(desc("waiters", "Callers that are waiting now."), func(s *pace.Stats) int64 { return int64(s.Waiters) }),
		integer(desc("demand", "Units that callers requested in the last full window."),
			func(s *pace.Stats) int64 { return s.Demand }),
		integer(desc("revision", "Revision of the plan in use. An instance with another revision has not received the newest plan."),
			func(s *pace.Stats) int64 { return s.Revision }),
		{
			desc("clock_offset_seconds", "Seconds by which this machine's clock is ahead of the clocks of other instances."),
			func(s *pace.Stats) float64 { return s.ClockOffset.Seconds() },
		},
		integer(desc("braked_percent", "Percentage of the limit that callers may use. A brake lowers it below 100."),
			func(s *pace.Stats) int64 { return int64(s.BrakedTo) }),
		integer(desc("lost", "1 if the source of the limit has been unreachable for so long that calls are stopped, otherwise 0."),
			func(s *pace.Stats) int64 { return truth(s.Lost) }),
	}
}

func paceCounters(desc describer) []paceCounter {
	return []paceCounter{
		{desc("acquired_total", "Units granted, with and without a wait."), func(s *pace.Stats) uint64 { return s.Acquired }},
		{desc("waited_total", "Units granted after a wait."), func(s *pace.Stats) uint64 { return s.Waited }},
		{
			desc("timed_out_total", "Callers that could not get their units before their deadline."),
			func(s *pace.Stats) uint64 { return s.TimedOut },
		},
		{desc("given_up_total", "Callers canceled while they were waiting."), func(s *pace.Stats) uint64 { return s.GivenUp }},
		{
			desc("faults_total", "Faults of the source of the limit. The last valid plan stayed in use."),
			func(s *pace.Stats) uint64 { return s.Faults },
		},
		{desc("brakes_total", "Brakes that were started."), func(s *pace.Stats) uint64 { return s.Brakes }},
	}
}

// Describe implements prometheus.Collector.
func (p *pacers) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range p.gauges {
		ch <- g.desc
	}
	for _, c := range p.counters {
		ch <- c.desc
	}
	ch <- p.waits
	ch <- p.refused
}

// Collect implements prometheus.Collector.
func (p *pacers) Collect(ch chan<- prometheus.Metric) {
	bounds := pace.WaitBounds()
	for _, s := range byProvider(p.stats()) {
		for _, g := range p.gauges {
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(&s), s.Provider)
		}
		for _, c := range p.counters {
			ch <- counter(c.desc, c.value(&s), s.Provider)
		}
		ch <- counter(p.refused, s.TooMany, s.Provider, "too_many_waiters")
		ch <- counter(p.refused, s.TooLarge, s.Provider, "too_large")
		ch <- waitsOf(p.waits, &s, bounds)
	}
}

// waitsOf builds a histogram from counts by class. The last class counts the waits
// beyond all bounds.
func waitsOf(d *prometheus.Desc, s *pace.Stats, bounds []time.Duration) prometheus.Metric {
	buckets := make(map[float64]uint64, len(bounds))
	n := uint64(0)
	for i, bound := range bounds {
		if i < len(s.Waits) {
			n += s.Waits[i]
		}
		buckets[bound.Seconds()] = n
	}
	for _, beyond := range s.Waits[min(len(bounds), len(s.Waits)):] {
		n += beyond
	}
	return prometheus.MustNewConstHistogram(d, n, s.WaitSum.Seconds(), buckets, s.Provider)
}

// byProvider merges the entries with the same label. Two metrics with the same labels
// would make the scrape fail.
func byProvider(all []pace.Stats) []pace.Stats {
	var merged []pace.Stats
	place := make(map[string]int)
	for _, s := range all {
		s.Provider = providerLabel(s.Provider)
		i, known := place[s.Provider]
		if !known && len(merged) >= maxProviders && s.Provider != otherProviders {
			s.Provider = otherProviders
			i, known = place[otherProviders]
		}
		if known {
			merged[i] = together(&merged[i], &s)
			continue
		}
		place[s.Provider] = len(merged)
		merged = append(merged, s)
	}
	return merged
}

// providerLabel converts a provider's name to a label: valid UTF-8 of limited length.
func providerLabel(name string) string {
	name = label(name)
	if len(name) <= maxProviderName {
		return name
	}
	end := maxProviderName
	for end > 0 && name[end]&0xc0 == 0x80 { // Do not cut inside a character.
		end--
	}
	return name[:end]
}

// together merges the Stats of two pacers of one provider. The plan comes from the
// pacer with the newer revision. Counts are added up. Of two fault states, the worse one
// is kept.
func together(a, b *pace.Stats) pace.Stats {
	sum := *a
	if b.Revision > a.Revision {
		sum.Limit, sum.Per, sum.Instances, sum.Index, sum.Revision = b.Limit, b.Per, b.Instances, b.Index, b.Revision
	}
	sum.Part, sum.Demand, sum.Waiters = a.Part+b.Part, a.Demand+b.Demand, a.Waiters+b.Waiters
	sum.Acquired, sum.Waited = a.Acquired+b.Acquired, a.Waited+b.Waited
	sum.TimedOut, sum.GivenUp = a.TimedOut+b.TimedOut, a.GivenUp+b.GivenUp
	sum.TooMany, sum.TooLarge = a.TooMany+b.TooMany, a.TooLarge+b.TooLarge
	sum.Faults, sum.Brakes = a.Faults+b.Faults, a.Brakes+b.Brakes
	sum.WaitSum = a.WaitSum + b.WaitSum
	sum.Waits = slices.Clone(a.Waits)
	for i, n := range b.Waits {
		if i == len(sum.Waits) {
			sum.Waits = append(sum.Waits, 0)
		}
		sum.Waits[i] += n
	}
	sum.BrakedTo, sum.Lost = min(a.BrakedTo, b.BrakedTo), a.Lost || b.Lost
	if math.Abs(b.ClockOffset.Seconds()) > math.Abs(a.ClockOffset.Seconds()) {
		sum.ClockOffset = b.ClockOffset
	}
	return sum
}
