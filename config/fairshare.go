package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/share"
)

const (
	fairShareExample = "{client: header:X-Client-Id, capacity: 2000}"
	// mostForgetAfter is eleven days of cycles of a second.
	mostForgetAfter = 1_000_000
	// maxExempt bounds each list of exempt, as package guard does.
	maxExempt = 256
)

// defaultFairShare gives what fair share is that is told nothing but what it must be told.
func defaultFairShare() guard.FairShare {
	return guard.FairShare{Config: fairshare.Config{
		Capacity: -1, Cycle: time.Second, Reservation: 10,
		NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	}}
}

// fairShare reads among which clients the capacity of the service is divided.
func (s *section) fairShare(c *Config) {
	f := defaultFairShare()
	fair := s.sub(fairShareName, fairShareExample)
	fair.shareClient(&f)
	fair.match(&f.Match)
	fair.exempt(&f.Exempt)
	fair.anonymous(&f)
	fair.capacity(&f)
	fair.duration("cycle", &f.Cycle, fairshare.LeastCycle, fairshare.MostCycle)
	fair.percent("reservation", &f.Reservation, 0, 100)
	oneOf(fair, "division", &f.Division, choicesOf(share.Divisions()))
	oneOf(fair, "reclaim", &f.Reclaim, choicesOf(fairshare.Reclaims()))
	fair.count("new_clients_per_cycle", &f.NewClientsPerCycle, 0, fairshare.MostNewClients)
	fair.count("forget_after", &f.ForgetAfter, 1, mostForgetAfter)
	fair.count("max_clients", &f.MaxClients, 1, fairshare.MostClients)
	fair.weights(&f)
	fair.shareCost(&f)
	fair.countOnce(&f)
	fair.boolean("trusted_names", &f.TrustNames)
	oneOf(fair, "mode", &f.Mode, append(choicesOf([]guard.Mode{guard.Enforce, guard.Shadow, guard.Off}),
		choice[guard.Mode]{word: "passthrough", known: guard.Shadow.String()}))
	fair.end()
	if !fair.begun() {
		return
	}
	fair.needs(&f)
	c.FairShare = &f
}

// exempt reads which requests fair share passes over.
func (s *section) exempt(into *guard.Exempt) {
	exempt := s.sub("exempt", "{paths: [/healthz]}")
	into.Paths = exempt.texts("paths", "[/healthz, /readyz]", maxExempt)
	into.Methods = exempt.texts("methods", "[OPTIONS]", maxExempt)
	exempt.outline.field("addresses").entries().written("", networkPattern)
	entries, _ := exempt.scalars("addresses", "[10.0.0.0/8]", maxExempt)
	for _, v := range entries {
		if network, ok := exempt.network(v); ok {
			into.Addresses = append(into.Addresses, network)
		}
	}
	exempt.end()
}

// needs asks for what must be there. A variable may give it, so that it need not stand
// in the file; a field that is not known may be the one that was meant.
func (s *section) needs(f *guard.FairShare) {
	if s.blamedAt(s.self.path) {
		return
	}
	if f.Client == (rule.Part{}) && !s.blamedAny("client") {
		s.missing("client", "write what tells clients apart, like client: header:X-Client-Id")
	}
	if f.Capacity < 0 && !s.blamedAny("capacity") {
		s.missing("capacity", "write how many units the service takes in a cycle, like capacity: 2000")
	}
}

// choicesOf gives the words of values that have them.
func choicesOf[T interface {
	comparable
	String() string
}](values []T) []choice[T] {
	choices := make([]choice[T], len(values))
	for i, v := range values {
		choices[i] = choice[T]{word: v.String(), value: v}
	}
	return choices
}

// shareClient reads what of a request names its client.
func (s *section) shareClient(f *guard.FairShare) {
	s.outline.field("client").written("", clientPattern)
	v, ok := s.scalar("client", "one part of a key, like header:X-Client-Id")
	if !ok {
		return
	}
	part, err := rule.ParsePart(v.text())
	switch {
	case err != nil:
		s.parseFault(v, err)
	case part.String() == "all":
		s.fault(v, "all is everybody, and a capacity is divided among clients",
			"write what tells clients apart, like header:X-Client-Id")
	default:
		f.Client = part
	}
}

// anonymousWord is what stands for no client: who names none is refused.
const anonymousWord = "reject"

// refusalWords are words that somebody writes who means what anonymousWord says, or its
// contrary, and no client's name.
var refusalWords = [...]string{"allow", "deny", "refuse", "rejected", "off", "none", "true", "false", "yes", "no"}

// anonymous reads what becomes of requests that name no client.
func (s *section) anonymous(f *guard.FairShare) {
	s.outline.field("anonymous").text(anonymousWord, "", 1, maxOverrideValue)
	v, ok := s.scalar("anonymous", "reject or the name of a client")
	if !ok || v.text() == anonymousWord {
		return
	}
	const fix = "write reject, or the name of a client that such requests count as, like anonymous"
	for _, word := range append(refusalWords[:], anonymousWord) {
		if strings.EqualFold(v.text(), word) {
			s.fault(v, quote(v.text())+" is not known", fix)
			return
		}
	}
	if problem, _ := clientNameFault(v.text()); problem != "" && v.text() != fairshare.Others {
		s.fault(v, problem, fix)
		return
	}
	f.Anonymous = v.text()
}

// capacity reads how many units a cycle has; how many there are in a second is another
// question, which somebody answers who writes a limit.
func (s *section) capacity(f *guard.FairShare) {
	s.outline.field("capacity").number(f.Capacity, 0, share.MaxCapacity)
	v, ok := s.scalar("capacity", "a whole number")
	if !ok {
		return
	}
	if l, err := rule.ParseLimit(v.text()); err == nil {
		s.fault(v, quote(v.text())+" is a limit, and a capacity counts the units of one cycle",
			fmt.Sprintf("write capacity: %d, and cycle: %s", l.Count, l.Period()))
		return
	}
	s.wholeNumber(v, &f.Capacity, 0, share.MaxCapacity)
}

// shareCost reads what a request takes of the capacity: more than all of it never passes.
func (s *section) shareCost(f *guard.FairShare) {
	v, stated := s.unitsOf(share.MaxCapacity, &f.Cost, &f.CostHeader)
	s.checkShareCost(v, f.Cost, f.Capacity)
	v, ok := s.mostStated(share.MaxCapacity, stated || s.blamedAny("cost"))
	if ok && s.wholeNumber(v, &f.MaxCost, 1, share.MaxCapacity) {
		s.checkShareCost(v, f.MaxCost, f.Capacity)
	}
}

func (s *section) checkShareCost(v value, cost, capacity int64) {
	if capacity > 0 && cost > capacity {
		s.fault(v, fmt.Sprintf("%d is more than the capacity ever admits, which is %d", cost, capacity),
			fmt.Sprintf("use at most %d, or raise the capacity", capacity))
	}
}

// countOnce reads by what the attempts of one request are known.
func (s *section) countOnce(f *guard.FairShare) {
	const example = "header:Idempotency-Key"
	s.outline.field("count_once").written("", costPattern)
	v, ok := s.scalar("count_once", "header:NAME")
	if !ok {
		return
	}
	text, named := strings.CutPrefix(v.text(), costHeaderPrefix)
	if !named {
		s.fault(v, "must be header:NAME, and is "+quote(v.text()), "write the header that retries repeat, like "+example)
		return
	}
	name, ok := s.headerName(v, len(costHeaderPrefix), text, example)
	switch {
	case !ok:
	case meaningOf(name) != "":
		s.fault(v, name+" "+meaningOf(name), "write the header that retries repeat, like "+example)
	default:
		f.CountOnce, f.IDHeader = true, name
	}
}

// count reads a whole number of things.
func (s *section) count(name string, into *int, least, most int) {
	n := int64(*into)
	s.number(name, &n, int64(least), int64(most))
	*into = int(n)
}
