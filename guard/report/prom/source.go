package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Source is the state of a source of rules, plans and customers.
type Source struct {
	// Kind is etcd, http or postgres. Revision is that of what is in force.
	Kind, Revision string
	// Known is false until objects are in force, and FromCache is true if they come from the cache.
	Known, FromCache bool
	// Changed is when a change last took effect. Reached is when everything that the source had was in force. Zero
	// times mean never.
	Changed, Reached time.Time
	// Failing is set if the last read failed, and Failures counts failed reads.
	Failing  bool
	Failures uint64
	// Changes counts changes that took effect, and Refused those that were held back. Held is the number of changes
	// that are held back now.
	Changes, Refused uint64
	Held             int
	// HeldObjects are the objects of these changes by kind and name, at most MaxHeldObjects beside those with the name OthersHeld.
	HeldObjects []HeldObject
	// Rules, Plans and Customers are the numbers of objects in force.
	Rules, Plans, Customers int
	// Cache is set if there is a cache. CacheFailing is set if it was not read or written.
	Cache, CacheFailing bool
	CacheWritten        time.Time
}

// MaxHeldObjects bounds the names of Source.HeldObjects. OthersHeld is the name of all further objects of a kind.
const (
	MaxHeldObjects = 16
	OthersHeld     = "others"
)

// HeldObject counts objects whose change is held back. Kind is rule, plan or customer.
type HeldObject struct {
	Kind, Name string
	N          int
}

// sourceCollector collects the metrics of a Source.
type sourceCollector struct {
	get                                            func() Source
	info, state, age, changed, up, failures        *prometheus.Desc
	changes, held, objects, cacheWritten, cacheBad *prometheus.Desc
	heldObjects                                    *prometheus.Desc
}

func newSourceCollector(get func() Source) *sourceCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_"+name, help, labels, nil)
	}
	return &sourceCollector{
		get:  get,
		info: desc("source_info", "The revision in force. The value is always 1.", "kind", "revision"),
		state: desc("source_state", "1 for the origin of what is in force: followed, cache, or unknown for the file alone; 0 for "+
			"the others.", "state"),
		age: desc("source_age_seconds", "Seconds since everything that the source had was in force. "+
			"With state cache, the age of the cache."),
		changed:  desc("source_last_change_timestamp_seconds", "Time at which a change of the source last took effect."),
		up:       desc("source_up", "1 if the last read of the source succeeded, otherwise 0."),
		failures: desc("source_failures_total", "Failed reads of the source."),
		changes: desc("source_changes_total", "Changes of the source that took effect, in batches, and changes that were held "+
			"back.", "result"),
		held: desc("source_held_changes", "Changes of the source that are held back because of a fault."),
		heldObjects: desc("source_held_objects", "Objects of the changes that are held back, by name. After 16 names, the name is others.",
			"kind", "name"),
		objects:      desc("source_objects", "Objects of the source in force.", "kind"),
		cacheWritten: desc("source_cache_timestamp_seconds", "Time at which source.cache was last written."),
		cacheBad:     desc("source_cache_failing", "1 if source.cache could not be read or written, otherwise 0."),
	}
}

// Describe implements prometheus.Collector.
func (c *sourceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.info, c.state, c.age, c.changed, c.up, c.failures, c.changes, c.held, c.heldObjects, c.objects, c.cacheWritten, c.cacheBad,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *sourceCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.get()
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	ch <- gauge(c.info, 1, s.Kind, s.Revision)
	ch <- gauge(c.state, flag(s.Known && !s.FromCache), "followed")
	ch <- gauge(c.state, flag(s.Known && s.FromCache), "cache")
	ch <- gauge(c.state, flag(!s.Known), "unknown")
	ch <- gauge(c.up, flag(!s.Failing && s.Known && !s.FromCache))
	ch <- counter(c.failures, s.Failures)
	ch <- counter(c.changes, s.Changes, "applied")
	ch <- counter(c.changes, s.Refused, "held")
	ch <- gauge(c.held, int64(s.Held))
	for _, h := range s.HeldObjects {
		ch <- gauge(c.heldObjects, int64(h.N), h.Kind, h.Name)
	}
	ch <- gauge(c.objects, int64(s.Rules), "rules")
	ch <- gauge(c.objects, int64(s.Plans), "plans")
	ch <- gauge(c.objects, int64(s.Customers), "customers")
	if !s.Reached.IsZero() {
		ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, time.Since(s.Reached).Seconds())
	}
	at := func(d *prometheus.Desc, t time.Time) {
		if !t.IsZero() {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(t.UnixMilli())/1000)
		}
	}
	at(c.changed, s.Changed)
	if s.Cache {
		ch <- gauge(c.cacheBad, flag(s.CacheFailing))
		at(c.cacheWritten, s.CacheWritten)
	}
}
