package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/rule"
)

const throttleExample = "{concurrency: 16, deadline: 500ms}"

// The bounds of the section.
const (
	mostConcurrency = 1_000_000
	mostQueued      = 1_000_000
	mostTenants     = 100_000
	mostDeadline    = time.Hour
)

// throttle reads the section throttle. Its tenants are the clients of fair share, unless it names
// others.
func (s *section) throttle(c *Config) {
	t := throttler.Config{
		Limits:      throttler.Limits{Deadline: time.Second, MaxWaiters: 10_000, MaxTenants: 1_000},
		MaxDeadline: time.Minute, Class: throttle.SheddablePlus,
	}
	section := s.sub(s.declare(throttler.Name, field.Taken, "Bounds the requests in flight at the service, and queues the rest by "+
		"importance, after fair share and the rules."), throttleExample)
	oneOf(section, section.declare("mode", field.Taken, "enforce delays and refuses requests; shadow only models the queue; off disables "+
		"the throttle."), &t.Mode, choicesOf([]guard.Mode{guard.Enforce, guard.Shadow, guard.Off}))
	section.count(section.declare("concurrency", field.Taken, "Requests that the service gets at once."), &t.Concurrency,
		1, mostConcurrency)
	section.duration(section.declare("cpu_in_flight", field.Taken, "In place of concurrency: predicted CPU time of the requests that the "+
		"service has at once, for services that report their work."), &t.CPUInFlight, time.Millisecond, mostDeadline)
	search := section.readSearch()
	section.duration(section.declare("deadline", field.Taken, "Time from a request to its answer, for requests that state none. It also "+
		"bounds the queue."), &t.Deadline, time.Millisecond, mostDeadline)
	section.duration(section.declare("max_deadline", field.Taken, "Highest deadline that a request may state."), &t.MaxDeadline,
		time.Millisecond, mostDeadline)
	section.tenant(&t, c)
	oneOf(section, section.declare("criticality", field.Taken, "Class of requests that state none in Headgate-Criticality."), &t.Class,
		choicesOf([]throttle.Class{throttle.CriticalPlus, throttle.Critical, throttle.SheddablePlus, throttle.Sheddable}))
	section.classes(&t)
	oneOf(section, section.declare("work", field.Taken, "reported: CPU time that the service reports in Headgate-Work, or else its time "+
		"at the service; service_time ignores reports."), &t.ServiceTime,
		[]choice[bool]{{word: "reported", value: false}, {word: "service_time", value: true}})
	oneOf(section, section.declare("streams", field.Taken, "handshake lets a stream give up its place when it begins; count keeps the "+
		"place until the stream ends."), &t.CountStreams, []choice[bool]{{word: "handshake", value: false}, {word: "count", value: true}})
	section.throttleQueue(&t)
	section.count(section.declare("max_tenants", field.Taken, "Tenants with a share of their own; the rest share one."), &t.MaxTenants,
		1, mostTenants)
	section.end()
	if !section.begun() {
		return
	}
	section.throttleNeeds(&t)
	search.throttleSearch(&t)
	c.Throttle = &t
}

const (
	classesExample = "[{match: {path: /checkout/*}, criticality: critical}]"
	// maxClasses bounds the entries of classes.
	maxClasses = 1000
)

// classes reads the classes that requests have by match.
func (s *section) classes(t *throttler.Config) {
	s.refuseTable("classes")
	s.declare("classes", field.Taken, "Classes by match, for requests that state none. Of several entries that match, the first counts.")
	entries, _ := s.list("classes", classesExample, 1, maxClasses)
	for _, v := range entries {
		if v.node == nil || s.full {
			continue
		}
		one := s.section(v, "write it like {match: {path: /checkout/*}, criticality: critical}")
		one.outline = s.outline.field("classes").entries()
		var c throttler.Classified
		one.declare("match", field.Taken, "Requests with the class, as in a rule.")
		one.required("match", "write which requests have the class, like match: {path: /checkout/*}")
		one.match(&c.Match, withoutBodies)
		one.required("criticality", "write the class, like criticality: critical")
		oneOf(one, one.declare("criticality", field.Taken, "Class of these requests."), &c.Class,
			choicesOf([]throttle.Class{throttle.CriticalPlus, throttle.Critical, throttle.SheddablePlus, throttle.Sheddable}))
		one.outline.field("criticality").dependent() // It has no default.
		one.end()
		t.Classes = append(t.Classes, c)
	}
}

// throttleQueue reads the bounds of the queue.
func (s *section) throttleQueue(t *throttler.Config) {
	queue := s.sub(s.declare("queue", field.Taken, "Bounds of the queue."), "{part_of_deadline: 40%}")
	part := 40
	queue.percent(queue.declare("part_of_deadline", field.Taken, "Part of deadline that the queued work may take, 1% to 100%."), &part,
		1, 100)
	t.PartOfDeadline = float64(part) / 100
	queue.count(queue.declare("max_waiters", field.Taken, "Queued requests."), &t.MaxWaiters, 1, mostQueued)
	queue.end()
}

// tenant reads the part of a request that names its tenant.
func (s *section) tenant(t *throttler.Config, c *Config) {
	if c.FairShare != nil {
		t.Tenant = c.FairShare.Client
	}
	s.declare("tenant", field.Taken, "Part of a request that names its tenant, for equal parts of the service. Default: the client of "+
		"fair_share; without fair_share, all requests have one tenant.")
	s.outline.field("tenant").written("", clientPattern)
	v, ok := s.scalar("tenant", "one part of a key, like header:X-Client-Id")
	if !ok {
		return
	}
	part, err := rule.ParsePart(v.text())
	switch {
	case err != nil:
		s.parseFault(v, err)
	case part.String() == "all" && c.FairShare != nil:
		s.fault(v, "all is one tenant, but the throttle needs several", "remove tenant: without it the client of fair_share is the tenant")
	case part.String() == "all":
		s.fault(v, "all is one tenant, but the throttle needs several", "remove tenant: without it all requests have one tenant")
	default:
		t.Tenant = part
	}
}

// throttleNeeds reports limits that are missing, or both given, and deadlines that exclude each
// other.
func (s *section) throttleNeeds(t *throttler.Config) {
	if s.blamedAt(s.self.path) || s.blamedAny("concurrency", "cpu_in_flight", "deadline", "max_deadline") {
		return
	}
	switch {
	case t.Concurrency == 0 && t.CPUInFlight == 0:
		s.missing("concurrency", "write how many requests the service can do at once, like concurrency: 16; "+
			"4 for each core is a good start")
	case t.Concurrency > 0 && t.CPUInFlight > 0:
		if v, ok := s.given("cpu_in_flight"); ok {
			s.fault(v, "takes the place of concurrency, which is set too", "remove one of them")
		}
	}
	s.throttleDeadlines(t)
}

// throttleDeadlines reports a deadline above max_deadline, at the one of both that is given.
func (s *section) throttleDeadlines(t *throttler.Config) {
	if t.Deadline <= t.MaxDeadline {
		return
	}
	if v, ok := s.given("deadline"); ok {
		s.fault(v, "is above max_deadline, "+field.FormatDuration(t.MaxDeadline), "lower it, or raise max_deadline")
	} else if v, ok := s.given("max_deadline"); ok {
		s.fault(v, "is below the default deadline, "+field.FormatDuration(t.Deadline), "raise it, or set a lower deadline")
	}
}

// writeThrottle writes the effect of the throttle, and a note about what weakens it.
func (c *Config) writeThrottle(b *strings.Builder) {
	t := c.Throttle
	if t == nil {
		return
	}
	most := field.Counted(t.Concurrency, "request")
	if t.Concurrency == 0 {
		most = field.FormatDuration(t.CPUInFlight) + " of CPU time"
	}
	tenants := "one tenant"
	if t.Tenant != (rule.Part{}) {
		tenants = fmt.Sprintf("up to %s by %s", field.Counted(t.MaxTenants, "tenant"), t.Tenant)
	}
	classes := t.Class.String()
	if n := len(t.Classes); n > 0 {
		classes = fmt.Sprintf("%s or by %s", classes, field.Counted(n, "match"))
	}
	fmt.Fprintf(b, "throttle %s: %s in flight, deadline %s, class %s; %s; queue of %s and %s of work\n", t.Mode, most,
		field.FormatDuration(t.Deadline), classes, tenants, field.Counted(t.MaxWaiters, "request"),
		field.FormatDuration(time.Duration(t.PartOfDeadline*float64(t.Deadline)).Round(time.Millisecond)))
	if len(c.Identity.TrustedProxies) == 0 && !c.Identity.TrustUnix {
		fmt.Fprintf(b, "note: identity.trusted_proxies is empty, so no peer may state %s or %s\n",
			throttler.FieldCriticality, throttler.FieldTimeout)
	}
	if c.Throttle.CPUInFlight > 0 {
		fmt.Fprintf(b, "note: cpu_in_flight needs a service that reports its work in %s; without reports the service time counts\n",
			throttler.FieldWork)
	}
}
