package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/rule"
)

const (
	fairShareExample = "{client: header:X-Client-Id, capacity: 2000}"
	// mostForgetAfter is eleven days, with cycles of one second.
	mostForgetAfter = 1_000_000
	// maxExempt bounds each list of exempt, as package guard does.
	maxExempt = 256
)

// defaultFairShare returns the defaults of fair share. A capacity of -1 means that it is not set.
func defaultFairShare() guard.FairShare {
	return guard.FairShare{Config: fairshare.Config{
		Capacity: -1, Cycle: time.Second, Reservation: 10,
		NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	}}
}

// fairShare reads the section fair_share.
func (s *section) fairShare(c *Config) {
	f := defaultFairShare()
	fair := s.sub(s.declare(fairShareName, field.Taken, "Divides the capacity of the service among its clients, before the rules "+
		"apply."), fairShareExample)
	fair.shareClient(&f)
	fair.declare("match", field.Taken, "Requests that fair share applies to: all given fields must match. Default: "+
		"every request.")
	fair.match(&f.Match, withoutBodies)
	fair.shareExempt(&f.Exempt)
	fair.anonymous(&f)
	fair.capacity(&f)
	fair.duration(fair.declare("cycle", field.Taken, "Length of a cycle, after which shares are divided again; 10ms to 1h."),
		&f.Cycle, fairshare.LeastCycle, fairshare.MostCycle)
	fair.percent(fair.declare("reservation", field.Taken, "The part of its default share that an idle client keeps, 0% to 100%; the "+
		"rest is lent."), &f.Reservation, 0, 100)
	oneOf(fair, fair.declare("division", field.Taken, "loan lends in proportion to demand beyond the default shares; "+
		"max_min satisfies small demands first."), &f.Division, choicesOf(share.Divisions()))
	oneOf(fair, fair.declare("reclaim", field.Taken, "at_once returns a lent share as soon as its owner needs it; "+
		"next_cycle returns it in the next cycle."), &f.Reclaim, choicesOf(fairshare.Reclaims()))
	fair.count(fair.declare("new_clients_per_cycle", field.Taken, "How many new clients get shares of their own in one cycle; further "+
		"clients share one bucket, others."), &f.NewClientsPerCycle, 0, fairshare.MostNewClients)
	fair.count(fair.declare("forget_after", field.Taken, "Cycles without a request after which a client is forgotten."),
		&f.ForgetAfter, 1, mostForgetAfter)
	fair.count(fair.declare("max_clients", field.Taken, "Bound of the clients with shares of their own, including clients in weights."),
		&f.MaxClients, 1, fairshare.MostClients)
	fair.weights(&f)
	fair.shareCost(&f)
	fair.countOnce(&f)
	fair.boolean(fair.declare("trusted_names", field.Taken, "true means that a gateway sets the names, "+
		"so that clients cannot invent them. New clients then get default shares within a tenth of a cycle."), &f.TrustNames)
	oneOf(fair, fair.declare("mode", field.Taken, "enforce refuses requests over a client's share; shadow only reports them; "+
		"off disables fair share."), &f.Mode, append(choicesOf([]guard.Mode{guard.Enforce, guard.Shadow, guard.Off}),
		choice[guard.Mode]{word: "passthrough", known: guard.Shadow.String()}))
	fair.end()
	if !fair.begun() {
		return
	}
	fair.needs(&f)
	c.FairShare = &f
}

// shareExempt reads which requests bypass fair share.
func (s *section) shareExempt(into *guard.Exempt) {
	exempt := s.sub(s.declare("exempt", field.Taken, "Requests that bypass fair share: those that match any entry. Their work is "+
		"not counted."), "{paths: [/healthz]}")
	into.Paths = exempt.texts(exempt.declare("paths", field.Taken, "Paths, exact or a prefix like /probes/*."),
		"[/healthz, /readyz]", maxExempt)
	into.Methods = exempt.texts(exempt.declare("methods", field.Taken, "Methods, in capitals."), "[OPTIONS]", maxExempt)
	for i, method := range into.Methods {
		if _, err := rule.ParseMethod(method); err != nil {
			exempt.parseFault(exempt.find(exempt.pathOf(fmt.Sprintf("methods[%d]", i))), err)
		}
	}
	exempt.declare("addresses", field.Taken, "Addresses and networks of the peer. Headers have no effect here.")
	exempt.outline.field("addresses").entries().written("", networkPattern)
	entries, _ := exempt.scalars("addresses", "[10.0.0.0/8]", maxExempt)
	for _, v := range entries {
		if network, ok := exempt.network(v); ok {
			into.Addresses = append(into.Addresses, network)
		}
	}
	exempt.end()
}

// needs reports required fields that are missing. A field can come from a variable instead of the
// file. After an unknown field, needs reports nothing, because that field may be a misspelled one.
func (s *section) needs(f *guard.FairShare) {
	if s.blamedAt(s.self.path) {
		return
	}
	if f.Client == (rule.Part{}) && !s.blamedAny("client") {
		s.missing("client", "write what identifies a client, like client: header:X-Client-Id")
	}
	if f.Capacity < 0 && !s.blamedAny("capacity") {
		s.missing("capacity", "write how many units the service can handle in a cycle, like capacity: 2000")
	}
}

// choicesOf returns a choice for each value, with its String as the word.
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

// shareClient reads the part of a request that identifies its client.
func (s *section) shareClient(f *guard.FairShare) {
	s.declare("client", field.Taken, "Part of a request that identifies its client: one part of a key, like header:X-Client-Id. "+
		"Each client has a share.")
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
		s.fault(v, "all is one client, but fair share needs several",
			"write what identifies a client, like header:X-Client-Id")
	case part.OfBody():
		s.fault(v, quote(v.text())+" is in the body, which fair share does not read",
			"write what identifies a client, like header:X-Client-Id")
	default:
		f.Client = part
	}
}

// anonymousWord refuses requests that name no client.
const anonymousWord = "reject"

// refusalWords are likely attempts to write anonymousWord, or its opposite. They are not accepted
// as the name of a client.
var refusalWords = [...]string{"allow", "deny", "refuse", "rejected", "off", "none", "true", "false", "yes", "no"}

// anonymous reads how requests that name no client are handled.
func (s *section) anonymous(f *guard.FairShare) {
	s.declare("anonymous", field.Taken, "reject refuses a request that names no client; any other word is the client name for such "+
		"requests.")
	s.outline.field("anonymous").text(anonymousWord, "", 1, maxOverrideValue)
	v, ok := s.scalar("anonymous", "reject or the name of a client")
	if !ok || v.text() == anonymousWord {
		return
	}
	const fix = "write reject, or a client name for such requests, like anonymous"
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

// capacity reads the units of one cycle. It rejects a limit such as 2000/s, because the length
// of a cycle is a separate field.
func (s *section) capacity(f *guard.FairShare) {
	s.declare("capacity", field.Taken, "Units that the service can handle in a cycle, for all clients together.")
	s.outline.field("capacity").number(f.Capacity, 0, share.MaxCapacity)
	v, ok := s.scalar("capacity", "a whole number")
	if !ok {
		return
	}
	if l, err := rule.ParseLimit(v.text()); err == nil {
		s.fault(v, quote(v.text())+" is a limit, but a capacity is the units of one cycle",
			fmt.Sprintf("write capacity: %d, and cycle: %s", l.Count, l.Period()))
		return
	}
	s.wholeNumber(v, &f.Capacity, 0, share.MaxCapacity)
}

// shareCost reads the cost of a request. A cost above the capacity would never be admitted.
func (s *section) shareCost(f *guard.FairShare) {
	v, stated := s.unitsOf(share.MaxCapacity, &f.Cost, &f.CostHeader, nil)
	s.checkShareCost(v, f.Cost, f.Capacity)
	s.declare("max_cost", field.Taken, "Highest cost that a request may state. Default: the capacity.")
	v, ok := s.mostStated(share.MaxCapacity, stated || s.blamedAny("cost"))
	if ok && s.wholeNumber(v, &f.MaxCost, 1, share.MaxCapacity) {
		s.checkShareCost(v, f.MaxCost, f.Capacity)
	}
}

func (s *section) checkShareCost(v value, cost, capacity int64) {
	if capacity > 0 && cost > capacity {
		s.fault(v, fmt.Sprintf("%d is more than the capacity of %d", cost, capacity),
			fmt.Sprintf("use at most %d, or raise the capacity", capacity))
	}
}

// countOnce reads the header that identifies the attempts of one request.
func (s *section) countOnce(f *guard.FairShare) {
	const example = "header:Idempotency-Key"
	s.declare("count_once", field.Taken, "Header that retries repeat, like header:Idempotency-Key: attempts of one request count "+
		"once in a client's demand. Default: each attempt counts.")
	s.outline.field("count_once").written("", costPattern)
	v, ok := s.scalar("count_once", "header:NAME")
	if !ok {
		return
	}
	text, named := strings.CutPrefix(v.text(), costHeaderPrefix)
	if !named {
		s.fault(v, "must be header:NAME, not "+quote(v.text()), "write the header that retries repeat, like "+example)
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

// count reads a whole number into an int.
func (s *section) count(name string, into *int, least, most int) {
	n := int64(*into)
	s.number(name, &n, int64(least), int64(most))
	*into = int(n)
}
