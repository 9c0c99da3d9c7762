package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Scenario is made-up traffic: the file of headgate simulate --scenario.
type Scenario struct {
	Seed    int64
	Length  time.Duration
	Clients []ScenarioClients
	Service *ScenarioService // nil without a model
}

// ScenarioClients is a group of clients that do the same.
type ScenarioClients struct {
	Name         string
	Number, Keys int64
	Zipf         float64
	Traffic      string
	Rate         headgate.Limit
	Jitter       bool
	Cost         int64
	Duration     time.Duration
	From, Until  time.Duration
	// Method, Host, Path and Query are those of the requests, as rules see them: Path is clean, and Query as it was sent.
	Method, Host, Path, Query string
	Headers                   [][2]string
}

// ScenarioService is a model of the service behind the guard.
type ScenarioService struct {
	Cores, Connections int64
	CPU, Hold, Wait    time.Duration
	// Above SlowFrom runnable requests, the service loses SlowBy percent of its speed for each more, and keeps at least LeastSpeed percent.
	SlowFrom, SlowBy, LeastSpeed int64
}

// Bounds of a scenario.
const (
	mostScenarioGroups  = 1_000
	mostScenarioKeys    = 1_000_000
	mostScenarioHeaders = 20
	mostScenarioLength  = 366 * 24 * time.Hour
	scenarioRetries     = "retry" // the traffic whose refused requests come back
	scenarioExample     = "clients: [{name: web, traffic: poisson, rate: 100/m}]"
)

// ParseScenario reads a scenario strictly: a fault has its place and its correction, as in a configuration. traffics are the words for
// the kind of traffic.
func ParseScenario(name string, text []byte, traffics []string) (*Scenario, error) {
	src, bad := newSource(name, text)
	if bad != nil {
		return nil, Faults{*bad}
	}
	root, bad := src.tree()
	if bad != nil {
		bad.Fix = strings.ReplaceAll(bad.Fix, "version: 1", "length: 1h") // Scenarios have no version.
		return nil, Faults{*bad}
	}
	r := &reader{source: src, root: root, environment: func(string) (string, bool) { return "", false }}
	s := &Scenario{Seed: 1}
	r.scenario(s, traffics)
	if err := r.result(); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *reader) scenario(into *Scenario, traffics []string) {
	s := r.section(value{node: r.root}, scenarioExample)
	s.number("seed", &into.Seed, 1, math.MaxInt64)
	s.required("length", "write how long the traffic lasts in virtual time, like length: 1h")
	s.duration("length", &into.Length, time.Millisecond, mostScenarioLength)
	s.required("clients", "write groups of clients, like "+scenarioExample)
	entries, _ := s.list("clients", scenarioExample, 1, mostScenarioGroups)
	names, keys := map[string]bool{}, int64(0)
	for _, v := range entries {
		if v.node == nil {
			continue
		}
		g := r.scenarioClients(v, traffics, into.Length)
		switch keys += g.Keys; {
		case names[g.Name] && g.Name != "":
			r.fault(v, "the name "+quote(g.Name)+" is already used", "give each group its own name")
		case keys > mostScenarioKeys:
			r.fault(v, "the groups have more than 1000000 keys together", "use fewer keys, or fewer clients")
			keys = math.MinInt64 / 2 // One fault is enough.
		}
		names[g.Name] = true
		into.Clients = append(into.Clients, g)
	}
	if s.has("service") {
		into.Service = &ScenarioService{Cores: 4, LeastSpeed: 5}
		r.scenarioService(s.sub("service", "service: {cores: 4, cpu: 5ms}"), into.Service)
	}
	s.end()
}

// scenarioClients reads one group.
func (r *reader) scenarioClients(v value, traffics []string, length time.Duration) ScenarioClients {
	s := r.section(v, scenarioExample)
	g := ScenarioClients{Number: 1}
	s.required("name", "write a name for the tables, like name: web")
	if at, ok := s.text("name", &g.Name); ok && g.Name == "" {
		r.fault(at, "is empty", "write a name for the tables, like name: web")
	}
	s.number("number", &g.Number, 1, mostScenarioKeys)
	g.Keys = g.Number
	s.number("keys", &g.Keys, 1, mostScenarioKeys)
	s.zipf(&g)
	s.required("traffic", "write one of "+strings.Join(traffics, ", "))
	if at, ok := s.text("traffic", &g.Traffic); ok && !slices.Contains(traffics, g.Traffic) {
		r.fault(at, quote(g.Traffic)+" is no kind of traffic", "write one of "+strings.Join(traffics, ", "))
	}
	s.required("rate", "write how many requests each client sends in a time, like rate: 100/m")
	s.rate(&g.Rate)
	s.boolean("jitter", &g.Jitter)
	if g.Jitter && g.Traffic != "" && g.Traffic != scenarioRetries {
		r.fault(s.keyOf("jitter"), "has no effect with traffic: "+g.Traffic,
			"write traffic: retry, whose refused requests come back, or remove jitter")
	}
	s.number("cost", &g.Cost, 1, headgate.MaxUnits)
	s.duration("duration", &g.Duration, 0, 24*time.Hour)
	s.duration("from", &g.From, 0, mostScenarioLength)
	g.Until = length
	s.duration("until", &g.Until, 0, mostScenarioLength)
	if length > 0 && g.Until > length {
		r.fault(s.keyOf("until"), "is after the end of the run", "write a time up to the length, or remove until")
	}
	if length > 0 && g.From >= min(g.Until, length) {
		r.fault(v, "the group sends nothing: it begins when it has ended", "write a from that is before until and before the length")
	}
	s.scenarioRequest(&g)
	s.end()
	return g
}

// zipf reads the exponent of a Zipf distribution.
func (s *section) zipf(g *ScenarioClients) {
	v, ok := s.scalar("zipf", "a number above 1")
	if !ok {
		return
	}
	x, err := strconv.ParseFloat(v.text(), 64)
	if err != nil || !(x > 1) || x > 10 {
		s.fault(v, quote(v.text())+" is no exponent of a Zipf distribution", "use a number above 1 and up to 10, like 1.1")
		return
	}
	g.Zipf = x
}

// rate reads a rate, which is written as a limit.
func (s *section) rate(into *headgate.Limit) {
	v, ok := s.scalar("rate", "a rate")
	if !ok {
		return
	}
	l, err := rule.ParseLimit(v.text())
	switch {
	case err != nil:
		s.parseFault(v, err)
	case l.Per == 0 || l.Count == 0 || l.Per < time.Microsecond || l.Count > 1_000_000_000:
		s.fault(v, quote(v.text())+" is no rate", "write 1 to 1000000000 requests in a time with a length, like 100/m")
	default:
		*into = l
	}
}

// scenarioService reads the model of a service.
func (r *reader) scenarioService(s *section, into *ScenarioService) {
	if s.self.node == nil || s.self.node.Kind != yaml.MappingNode {
		return
	}
	s.number("cores", &into.Cores, 1, 10_000)
	s.number("connections", &into.Connections, 0, 1_000_000)
	s.duration("cpu", &into.CPU, 0, time.Hour)
	s.duration("hold", &into.Hold, 0, time.Hour)
	s.duration("wait", &into.Wait, 0, time.Hour)
	s.number("slow_from", &into.SlowFrom, 0, 1_000_000)
	s.number("slow_by", &into.SlowBy, 0, 100)
	s.number("least_speed", &into.LeastSpeed, 1, 100)
	if into.Hold > 0 && into.Connections == 0 {
		r.fault(s.keyOf("hold"), "has no effect without connections", "write how many there are, like connections: 16; 1 is a lock")
	}
	s.end()
}
