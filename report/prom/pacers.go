package prom

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/pace"
)

const (
	// maxProviders bounds how many providers have series of their own: a program that
	// makes a pacer for each name that it meets must not fill Prometheus.
	maxProviders = 1000
	// maxProviderName bounds a label, in bytes.
	maxProviderName = 128
	// otherProviders has what those providers did that are beyond maxProviders.
	otherProviders = "others"
)

// Pacers shows pacers: register it with any registry, that of [NewRegistry] among them.
// stats is asked at every scrape, and gives the Stats of all pacers of the program, always
// in the same order: newer ones last. Pacers of one provider are shown as one, that has
// done what all of them did.
//
// Label provider is pace.Config.Provider. The first 1000 providers have series of their
// own, and all further ones are others: no program makes more, whatever it names them after.
func Pacers(stats func() []pace.Stats) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_pace_"+name, help, append([]string{"provider"}, labels...), nil)
	}
	return &pacers{
		stats:    stats,
		gauges:   paceGauges(desc),
		counters: paceCounters(desc),
		waits:    desc("wait_seconds", "How long those waited who got their units after a wait."),
		refused:  desc("refused_total", "Who was refused at once: too many waited, or it asked for more than a window has.", "reason"),
	}
}

// pacers makes metrics of what pacers are at the time of a scrape.
type pacers struct {
	stats          func() []pace.Stats
	gauges         []paceGauge
	counters       []paceCounter
	waits, refused *prometheus.Desc
}

// paceGauge is a gauge of each provider.
type paceGauge struct {
	desc *prometheus.Desc
	of   func(*pace.Stats) float64
}

// paceCounter is a counter of each provider.
type paceCounter struct {
	desc *prometheus.Desc
	of   func(*pace.Stats) uint64
}

// describer names a metric of each provider.
type describer func(name, help string, labels ...string) *prometheus.Desc

func paceGauges(desc describer) []paceGauge {
	whole := func(d *prometheus.Desc, of func(*pace.Stats) int64) paceGauge {
		return paceGauge{d, func(s *pace.Stats) float64 { return float64(of(s)) }}
	}
	return []paceGauge{
		whole(desc("limit", "Units that all instances together may take in a window."),
			func(s *pace.Stats) int64 { return s.Limit }),
		{
			desc("window_seconds", "A window's length."),
			func(s *pace.Stats) float64 { return s.Per.Seconds() },
		},
		whole(desc("instances", "How many instances share the limit."),
			func(s *pace.Stats) int64 { return int64(s.Instances) }),
		whole(desc("part", "Units of the present window that are this instance's."),
			func(s *pace.Stats) int64 { return s.Part }),
		whole(desc("waiters", "Who waits now."), func(s *pace.Stats) int64 { return int64(s.Waiters) }),
		whole(desc("demand", "Units that were asked for in the last whole window."),
			func(s *pace.Stats) int64 { return s.Demand }),
		whole(desc("revision", "The revision of the plan that holds: instances that show another have not heard of it."),
			func(s *pace.Stats) int64 { return s.Revision }),
		{
			desc("clock_offset_seconds", "How far this machine's wall clock is ahead of the other instances'."),
			func(s *pace.Stats) float64 { return s.ClockOffset.Seconds() },
		},
		whole(desc("braked_percent", "Percent of the limit that may go: less than 100 while a brake holds."),
			func(s *pace.Stats) int64 { return int64(s.BrakedTo) }),
		whole(desc("lost", "Whether the source is lost for so long that nothing may go."),
			func(s *pace.Stats) int64 { return truth(s.Lost) }),
	}
}

func paceCounters(desc describer) []paceCounter {
	return []paceCounter{
		{desc("acquired_total", "Units given, those after a wait among them."), func(s *pace.Stats) uint64 { return s.Acquired }},
		{desc("waited_total", "Units given after a wait."), func(s *pace.Stats) uint64 { return s.Waited }},
		{
			desc("timed_out_total", "Who could not be served in the time that it allowed."),
			func(s *pace.Stats) uint64 { return s.TimedOut },
		},
		{desc("given_up_total", "Who was cancelled while it waited."), func(s *pace.Stats) uint64 { return s.GivenUp }},
		{
			desc("faults_total", "Faults of the source that tells the limit; the last good plan was kept."),
			func(s *pace.Stats) uint64 { return s.Faults },
		},
		{desc("brakes_total", "Brakes that were begun."), func(s *pace.Stats) uint64 { return s.Brakes }},
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
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(&s), s.Provider)
		}
		for _, c := range p.counters {
			ch <- counter(c.desc, c.of(&s), s.Provider)
		}
		ch <- counter(p.refused, s.TooMany, s.Provider, "too_many_waiters")
		ch <- counter(p.refused, s.TooLarge, s.Provider, "too_large")
		ch <- waitsOf(p.waits, &s, bounds)
	}
}

// waitsOf makes a histogram of counts by class, of which the last has what is beyond
// all bounds.
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

// byProvider gives one entry for each label: two metrics of the same labels would end
// the scrape.
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

// providerLabel gives a provider's name as a label: valid UTF-8, of a bounded length.
func providerLabel(name string) string {
	name = label(name)
	if len(name) <= maxProviderName {
		return name
	}
	end := maxProviderName
	for end > 0 && name[end]&0xc0 == 0x80 { // Not in the middle of a character.
		end--
	}
	return name[:end]
}

// together gives the state of two pacers of one provider: the plan is the newer one's,
// what they did and hold is added up, and of what is wrong the worse is told.
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
