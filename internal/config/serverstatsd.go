package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/config/field"
)

// Statsd is a receiver of the counters of Envoy's rate limit service.
type Statsd struct {
	// Format is StatsdPlain, over TCP, or StatsdDog, over UDP and with tags. Default StatsdPlain.
	Format StatsdFormat
	// Address is host:port.
	Address string
	// Interval is the time between two sends. Default 10s.
	Interval time.Duration
	// Tags are in every line, sorted by name.
	Tags []StatsdTag
	// Rewrites change the names of counters. The first one whose pattern matches a name applies.
	Rewrites []StatsdRewrite
}

// StatsdFormat is a form of lines.
type StatsdFormat string

// The values of format.
const (
	// StatsdPlain are lines without tags, over TCP.
	StatsdPlain StatsdFormat = "statsd"
	// StatsdDog are lines with tags, over UDP.
	StatsdDog StatsdFormat = "dogstatsd"
)

// StatsdTag is a name and a value.
type StatsdTag struct{ Name, Value string }

// StatsdRewrite changes the names of counters that match Pattern, a regular expression of Go. $1 in Name and in Tags is its first
// group.
type StatsdRewrite struct {
	Pattern, Name string
	Tags          []StatsdTag
}

// Bounds of the section: each receiver keeps a map of all counters.
const (
	mostReceivers  = 4
	mostTags       = 64
	mostRewrites   = 256
	maxPattern     = 1024
	statsdExample  = "{address: 127.0.0.1:8125, format: dogstatsd}"
	rewriteExample = `{pattern: '^ratelimit\.service\.(.*)$', name: 'ratelimit.$1'}`
)

// statsd reads the receivers.
func (s *section) statsd(into *[]Statsd) {
	s.declare("statsd", field.Restart, "Receivers of the counters of Envoy's rate limit service.")
	entries, _ := s.list("statsd", "["+statsdExample+"]", 0, mostReceivers)
	for _, v := range entries {
		if v.node == nil || s.full {
			continue
		}
		one := s.section(v, "write it like "+statsdExample)
		one.outline = s.outline.field("statsd").entries()
		if one.self.node == nil {
			continue
		}
		r := Statsd{Format: StatsdPlain, Interval: 10 * time.Second}
		one.required("address", "write the receiver's host and port, like 127.0.0.1:8125")
		if at, ok := one.text(one.declare("address", field.Restart, "Host and port of the receiver."), &r.Address); ok {
			const fix = "write host and port, like 127.0.0.1:8125"
			switch a, _, problem := parseAddress(r.Address); {
			case problem != "":
				one.fault(at, "address "+quote(r.Address)+" "+problem, fix)
			case a.host == "" || a.port == 0:
				one.fault(at, "address "+quote(r.Address)+" does not name a receiver", fix)
			}
		}
		oneOf(one, one.declare("format", field.Restart, "statsd writes lines over TCP, dogstatsd lines with tags over UDP."), &r.Format,
			[]choice[StatsdFormat]{{word: string(StatsdPlain), value: StatsdPlain}, {word: string(StatsdDog), value: StatsdDog}})
		if slices.ContainsFunc(*into, func(other Statsd) bool { return other.Address == r.Address && other.Format == r.Format }) {
			one.fault(one.keyOf("address"), "has the address and the format of another receiver, which would count twice",
				"remove one of them")
		}
		one.duration(one.declare("interval", field.Restart, "Time between two sends."), &r.Interval, 100*time.Millisecond, time.Hour)
		r.Tags = one.statsdTags()
		one.rewrites(&r)
		one.end()
		*into = append(*into, r)
	}
	s.keep("statsd", fmt.Sprint(*into))
}

// statsdTags reads tags, sorted by name.
func (s *section) statsdTags() []StatsdTag {
	var all map[string]string
	s.pairs(s.declare("tags", field.Restart, "Tags of every line, and their values."), "{env: prod}", &all)
	if len(all) > mostTags {
		s.fault(s.keyOf("tags"), fmt.Sprintf("has %d tags", len(all)), fmt.Sprintf("use at most %d", mostTags))
	}
	var tags []StatsdTag
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, StatsdTag{name, all[name]})
	}
	return tags
}

// rewrites reads the rewrites of a receiver.
func (s *section) rewrites(r *Statsd) {
	s.declare("rewrites", field.Restart, "dogstatsd: new names for counters whose names match a regular expression. The first "+
		"match applies.")
	entries, _ := s.list("rewrites", "["+rewriteExample+"]", 0, mostRewrites)
	for _, v := range entries {
		if v.node == nil || s.full {
			continue
		}
		one := s.section(v, "write it like "+rewriteExample)
		one.outline = s.outline.field("rewrites").entries()
		if one.self.node == nil {
			continue
		}
		w := StatsdRewrite{}
		one.required("pattern", "write a regular expression, like '^ratelimit'")
		if at, ok := one.text(one.declare("pattern", field.Restart, "Regular expression that a name must match."), &w.Pattern); ok {
			if _, err := regexp.Compile(w.Pattern); err != nil || len(w.Pattern) > maxPattern {
				one.fault(at, quote(w.Pattern)+" is not a regular expression of at most 1024 bytes", "write one in the syntax of RE2")
			}
		}
		one.required("name", "write the new name, like ratelimit.$1")
		one.text(one.declare("name", field.Restart, "The new name. $1 is the first group of the pattern."), &w.Name)
		w.Tags = one.statsdTags()
		one.end()
		r.Rewrites = append(r.Rewrites, w)
	}
	if s.has("rewrites") && r.Format != StatsdDog && !s.blamedAny("format", "rewrites") {
		s.fault(s.keyOf("rewrites"), "has no effect with format statsd", "remove it, or write format: dogstatsd")
	}
}
