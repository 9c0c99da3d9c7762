package config

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/rule"
)

// Lease has the settings of capacity leases, which headgate server gives on its gRPC listener, and which rules spend.
type Lease struct {
	// Servers are host:port of the parents: servers of one group. Default none: this server is the root. Without the gRPC
	// listener, the rules of this process have their leases from Servers, and Length, Refresh and Holders have no effect.
	Servers []string
	// TokenFile is the file with the token of this server at its parents. Default "": no token.
	TokenFile string
	// UseTLS encrypts the connections to the parents, with the files of TLS.
	UseTLS bool
	TLS    SourceTLS
	// Election is nil for a server that is alone.
	Election *LeaseElection
	// OnLoss says what is divided when the lease of the parent has ended. Default LossSafe.
	OnLoss state.Loss
	// Length is the length of leases. Default 30s for the root, 15s for a leaf, and 22.5s for a server between servers.
	Length time.Duration
	// Refresh is how often holders report. Default 5s.
	Refresh time.Duration
	// Limits is nil if only the file has capacities.
	Limits *LeaseLimits
	// Resources of a root: exact names first, then patterns in order.
	Resources []state.Resource
	// MaxLeases bounds the resources of rules with a lease. Default 1000.
	MaxLeases int
	// Holders says what the callers of server.callers may do. Others have weight 1 and band 1.
	Holders map[string]state.Caller
}

const (
	leaseName    = "lease"
	leaseExample = `{resources: [{match: "db/*", capacity: 500/s}]}`
	// listenTime is how long a server that starts listens before it divides: the default of state.Config.Learn. leaseMargin
	// is left for messages on their way.
	listenTime, leaseMargin = time.Second, 2 * time.Second
	maxResources            = 1000
	// The default lengths of leases.
	lengthAtRoot, lengthBetween, lengthAtLeaf = 30 * time.Second, 22500 * time.Millisecond, 15 * time.Second
	leaseSlots                                = "in_flight"
)

// leases reads the settings of capacity leases. Without the section, c.Lease stays nil.
func (s *section) leases(c *Config) {
	l := &Lease{Refresh: 5 * time.Second, MaxLeases: state.MaxClaims}
	lease := s.sub(s.declare(leaseName, field.Taken, "Capacity leases: what headgate server gives on its gRPC "+
		"listener, and where rules with a lease get theirs from."), leaseExample)
	lease.settable = false // Variables cannot set resources and holders.
	lease.leaseServers(l)
	lease.file(lease.declare("token_file", field.Restart, "File with the token of this server at its parents. It is read for each stream."),
		&l.TokenFile)
	tls := lease.sourceTLS(&l.TLS)
	l.UseTLS = tls.begun()
	oneOf(lease, lease.declare("on_loss", field.Restart, "What a server divides when the lease of its parent has ended: safe divides the "+
		"safe amount for each holder, pessimistic nothing, optimistic gives what is wanted."), &l.OnLoss,
		choicesOf([]state.Loss{state.LossSafe, state.LossPessimistic, state.LossOptimistic}))
	lease.duration(lease.declare("length", field.Restart, "Length of leases. Default: 30s for the root, 15s for a leaf, 22500ms for a "+
		"server between servers. A child needs shorter leases than its parent."), &l.Length, time.Second, time.Hour)
	lease.duration(lease.declare("refresh", field.Restart, "How often holders report."), &l.Refresh, 100*time.Millisecond, 10*time.Minute)
	lease.count(lease.declare("max_leases", field.Restart, "Resources of rules with a lease that this process holds at a time. The "+
		"fallback decides the requests of others."), &l.MaxLeases, 1, state.MaxClaims)
	lease.leaseElection(l)
	lease.leaseLimits(l)
	lease.leaseResources(l)
	lease.leaseHolders(l)
	lease.end()
	// A reload can change the section, but cannot add or remove it.
	s.fixed.Add(leaseName, lease.begun())
	if !lease.begun() {
		s.leaseRules(c, nil)
		return
	}
	lease.leaseLength(l)
	lease.leaseNeeds(c, l, tls)
	c.Lease = l
}

// leaseServers reads the parents.
func (s *section) leaseServers(l *Lease) {
	const example = "[eu-1.example.com:8081, eu-2.example.com:8081]"
	s.declare("servers", field.Restart, "host:port of the parents: servers of one group, of which one is used. Default: none, "+
		"for the root.")
	l.Servers = s.hostPorts("servers", example, "eu-1.example.com:8081")
}

// leaseResources reads the resources of a root.
func (s *section) leaseResources(l *Lease) {
	s.declare("resources", field.Taken, "Resources of the root: an exact name first, then patterns in order.")
	entries, _ := s.list("resources", `[{match: "db/*", capacity: 500/s}]`, 1, maxResources)
	seen := map[string]bool{}
	for _, v := range entries {
		if s.full || v.node == nil {
			continue
		}
		one := s.section(v, `write it like {match: "db/*", capacity: 500/s}`)
		one.outline = s.outline.field("resources").entries()
		r := one.leaseResource()
		one.end()
		if seen[r.Match] && r.Match != "" {
			s.fault(v, "the pattern "+quote(r.Match)+" appears twice", "remove one of them")
		}
		seen[r.Match] = true
		l.Resources = append(l.Resources, r)
	}
}

// leaseResource reads one resource.
func (s *section) leaseResource() (r state.Resource) {
	r.Algorithm, r.Safe = state.MaxMin, -1
	s.declare("match", field.Taken, "Name of a resource, or a pattern in which * stands for any text, / included.")
	s.required("match", `write a name or a pattern, like match: "db/*"`)
	s.outline.field("match").text("", "", 1, state.MaxName)
	if v, ok := s.textOf("match", &r.Match); ok && (r.Match == "" || len(r.Match) > state.MaxName) {
		s.fault(v, "is empty or too long", fmt.Sprintf("use 1 to %d bytes", state.MaxName))
	}
	oneOf(s, s.declare("unit", field.Taken, "What an amount is: rate for units per time, in_flight for slots."), &r.Slots,
		[]choice[bool]{{word: "rate", value: false}, {word: leaseSlots, value: true}})
	oneOf(s, s.declare("algorithm", field.Taken, "How the capacity is divided: max_min satisfies small claims first, proportional lends "+
		"unused parts of equal shares, static bounds each holder by the capacity, none bounds nothing."), &r.Algorithm,
		choicesOf([]state.Algorithm{state.MaxMin, state.Proportional, state.Static, state.None}))
	s.required("capacity", "write what all holders together may use, like capacity: 500/s")
	s.leaseAmount("capacity", "What all holders together may use: a limit like 500/s, or a number of slots.", r.Slots, &r.Capacity)
	s.leaseAmount("min_capacity", "The least capacity to which calls that the resource refuses, with 429 or 503, lower it. Default: such "+
		"calls have no effect.", r.Slots, &r.MinCapacity)
	v, ok := s.given("min_capacity")
	if ok && !s.blamedAny("capacity", "min_capacity") && (r.MinCapacity < 1 || r.MinCapacity > r.Capacity) {
		s.fault(v, "is 0 or above the capacity", "use a part of the capacity, or remove it")
	}
	s.leaseAmount("safe", "What a holder may use when it cannot renew its lease. Default: the capacity divided by the number of holders.",
		r.Slots, &r.Safe)
	s.leaseBands(&r)
	return r
}

// leaseAmount reads a rate in thousandths of a unit a second, or a number of slots.
func (s *section) leaseAmount(name, text string, slots bool, into *int64) {
	s.declare(name, field.Taken, text)
	s.outline.field(name).written("", limitPattern)
	s.outline.field(name).number(-1, 0, state.MaxAmount)
	v, ok := s.scalar(name, "a limit or a number of slots")
	if !ok || s.blamedAny("unit") {
		return
	}
	if slots {
		s.wholeNumber(v, into, 0, state.MaxAmount)
		return
	}
	parsed, err := rule.ParseLimit(v.text())
	if err != nil {
		if _, number := strconv.ParseInt(v.text(), 10, 64); number == nil {
			s.fault(v, quote(v.text())+" is a number, but the unit is rate", "write a limit like 500/s, or unit: in_flight")
			return
		}
		s.parseFault(v, err)
		return
	}
	const thousandths = 1000
	rate := float64(parsed.Count) * thousandths * float64(time.Second) / float64(parsed.Per)
	switch {
	case parsed.Per == 0:
		s.fault(v, "a month, a week or a day of the calendar is no rate", "write a limit like 500/s")
	case rate > float64(state.MaxAmount) || parsed.Count > 0 && rate < 1:
		s.fault(v, quote(v.text())+" is out of range", fmt.Sprintf("use 1/1000s to %d/s", state.MaxAmount/thousandths))
	default:
		*into = int64(rate)
	}
}

// leaseBands reads the priority bands of a resource.
func (s *section) leaseBands(r *state.Resource) {
	s.declare("bands", field.Taken, "Priority bands, the first one is served first. A floor is the part of the capacity that a band gets "+
		"before higher ones. Default: one band.")
	entries, _ := s.list("bands", "[{floor: 10%}, {}]", 1, state.MaxBands)
	sum := 0
	for _, v := range entries {
		if v.node == nil {
			continue
		}
		one := s.section(v, "write it like {floor: 10%}, or {}")
		one.outline = s.outline.field("bands").entries()
		floor := 0
		one.percent(one.declare("floor", field.Taken, "Part of the capacity that the band gets before higher ones. Default: none."),
			&floor, 0, 100)
		one.end()
		r.Floors = append(r.Floors, floor)
		sum += floor
	}
	if sum > 100 && !s.blamedAny("bands") {
		s.fault(s.find(s.pathOf("bands")), fmt.Sprintf("the floors add up to %d%%", sum), "use at most 100% for all bands together")
	}
}

// leaseHolders reads what callers may do.
func (s *section) leaseHolders(l *Lease) {
	all := s.sub(s.declare("holders", field.Taken, "What callers may do, by their names in server.callers. Others have weight 1 and "+
		"band 1."),
		"{batch: {weight: 2}}")
	each := all.outline.each(maxCallers)
	for _, name := range all.names {
		v, ok := all.valueOf(name)
		if s.full || !ok {
			continue
		}
		one := s.section(v, "write it like {weight: 2}")
		one.outline = each
		caller := state.Caller{Weight: 1}
		one.number(one.declare("weight", field.Taken, "Weight in the division of a band."), &caller.Weight, 1, state.MaxWeight)
		one.leaseCallerBands(&caller)
		one.boolean(one.declare("server", field.Taken, "true permits reports for holders below the caller: it is a server with servers."),
			&caller.Server)
		one.end()
		if l.Holders == nil {
			l.Holders = map[string]state.Caller{}
		}
		l.Holders[name] = caller
	}
}

// leaseCallerBands reads the bands of a caller.
func (s *section) leaseCallerBands(c *state.Caller) {
	s.declare("bands", field.Taken, "Bands that the claims of the caller may name; the first one is used by claims without a band. "+
		"Default: [1].")
	s.outline.field("bands").entries().number(0, 1, state.MaxBands)
	entries, _ := s.scalars("bands", "[2]", state.MaxBands)
	for _, v := range entries {
		var band int64
		if !s.wholeNumber(v, &band, 1, state.MaxBands) {
			continue
		}
		if slices.Contains(c.Bands, int(band)) {
			s.fault(v, "appears twice", "remove one of them")
		}
		c.Bands = append(c.Bands, int(band))
	}
}

// leaseLength sets the default length, and checks that a lease survives a take-over.
func (s *section) leaseLength(l *Lease) {
	if l.Length == 0 {
		switch l.Length = lengthAtRoot; {
		case len(l.Servers) > 0 && l.servers():
			l.Length = lengthBetween
		case len(l.Servers) > 0:
			l.Length = lengthAtLeaf
		}
	}
	what := "a server that starts listens for " + field.FormatDuration(listenTime)
	if l.Election != nil {
		what = "another server takes over after " + field.FormatDuration(l.Election.TTL) + ", and listens for " +
			field.FormatDuration(listenTime)
	}
	if least := l.leastLength(); l.Length < least && !s.blamedAny("length", "refresh", electionName) {
		at := s.self
		for _, name := range [...]string{"length", "refresh", electionName} {
			if v, ok := s.given(name); ok {
				at = v
				break
			}
		}
		s.fault(at, fmt.Sprintf("leases of %s end during a restart: a refresh takes up to %s, and %s", field.FormatDuration(l.Length),
			field.FormatDuration(l.Refresh), what),
			fmt.Sprintf("use a length of at least %s, or a shorter refresh", field.FormatDuration(least)))
	}
}

// leastLength is the shortest length of leases that survive a restart.
func (l *Lease) leastLength() time.Duration {
	least := l.Refresh + listenTime + leaseMargin
	if l.Election != nil {
		least += l.Election.TTL
	}
	return least
}

// servers reports whether a server may be below this one.
func (l *Lease) servers() bool {
	for _, caller := range l.Holders {
		if caller.Server {
			return true
		}
	}
	return false
}

// leaseNeeds checks what the section needs, and fields without effect.
func (s *section) leaseNeeds(c *Config, l *Lease, tls *section) {
	child := len(l.Servers) > 0
	group := l.Election != nil && len(l.Election.Servers) > 0
	if !child && !s.blamedAny("servers") {
		s.leaseOfRoot(l, tls, group)
	}
	if child && s.has(leaseLimitsName) && !s.blamedAny(leaseLimitsName) {
		s.fault(s.keyOf(leaseLimitsName), "has no effect with servers", "write limits at the root")
	}
	if child && s.has("resources") && !s.blamedAny("resources") {
		s.fault(s.keyOf("resources"), "has no effect with servers", "write resources at the root")
	}
	s.leaseListener(c, l, child)
}

// leaseOfRoot checks the section of a server without a parent. Rules of a group use the token, on_loss and tls.
func (s *section) leaseOfRoot(l *Lease, tls *section, group bool) {
	if !group && !s.blamedAny(electionName) {
		for _, name := range [...]string{"token_file", "on_loss"} {
			if v, ok := s.given(name); ok {
				s.fault(v, "has no effect without servers", "remove it, or write the servers of the parent")
			}
		}
		if tls.begun() {
			s.unused(tls, "has no effect without servers", "remove it, or write the servers of the parent")
		}
	}
	if len(l.Resources) == 0 && !s.blamedAny("resources") && !s.blamedAt(s.self.path) {
		s.missing("resources", `write what the root divides, like resources: [{match: "db/*", capacity: 500/s}], or the servers of a `+
			"parent")
	}
}

// leaseListener checks what the gRPC listener gives, or that rules have their leases from servers.
func (s *section) leaseListener(c *Config, l *Lease, child bool) {
	rules := s.hasLeaseRules(c)
	if v, ok := s.given("max_leases"); ok && !rules {
		s.fault(v, "has no effect without a rule with a lease", "remove it, or write lease: RESOURCE in a rule")
	}
	s.leaseOfGroup(c, l, rules)
	s.leaseReach(c, l, rules && !s.deferred)
	s.leaseOfRulesOfRoot(c, l)
	switch {
	case (c.Server == nil || c.Server.GRPC.Address == "") && child && rules:
		s.leaseOfRules()
	case c.Server == nil || c.Server.GRPC.Address == "":
		if !s.blamed("server") {
			s.fault(s.self, "needs the gRPC listener of headgate server", `write server: {grpc: "127.0.0.1:8081"}`)
		}
	case s.has("holders") && c.Server.GRPC.Auth == 0 && !s.blamed("server"):
		s.fault(s.keyOf("holders"), "has no effect, because no client of server.grpc has a name",
			"write server: {grpc: {auth: token, ...}, callers: ...}")
	case c.Server.CallersFile == "" && !s.blamed("server"):
		s.leaseCallers(c, l)
	}
}

// leaseOfGroup checks that rules know all servers of a group: their leases come from its master.
func (s *section) leaseOfGroup(c *Config, l *Lease, rules bool) {
	if l.Election == nil || s.blamedAny(electionName) {
		return
	}
	switch v := s.find(s.pathOf(electionName + ".servers")); {
	case len(l.Election.Servers) > 0 && !rules:
		s.fault(v, "has no effect without a rule with a lease", "remove it, or write lease: RESOURCE in a rule")
	case len(l.Election.Servers) == 0 && leased(c):
		s.fault(s.keyOf(electionName), "rules with a lease get theirs from the master, and the servers of the group are missing",
			"write host:port of each of them, this one too, like servers: [eu-1.example.com:8081, eu-2.example.com:8081]")
	}
}

// leaseCallers finds holders that are no callers, or may not use leases.
func (s *section) leaseCallers(c *Config, l *Lease) {
	for name := range l.Holders {
		at := slices.IndexFunc(c.Server.Callers, func(known Caller) bool { return known.Name == name })
		switch {
		case at < 0:
			s.fault(s.find(s.pathOf("holders."+name)), "no caller is called "+quote(name),
				"add it to server.callers with the scope lease, or remove it")
		case c.Server.Callers[at].Scopes&ScopeLease == 0:
			s.fault(s.find(s.pathOf("holders."+name)), "caller "+quote(name)+" lacks the scope lease",
				"add lease to its scopes in server.callers, or remove it")
		}
	}
}
