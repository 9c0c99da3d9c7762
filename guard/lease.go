package guard

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/rule"
)

// Lease makes the lease of this process the limit of a rule, in place of Policies: a token bucket in this process's
// memory, whose rate is that of the lease. Config.Leases has the leases.
type Lease struct {
	// Resource is the name of the resource. {1} to {3} stand for the parts of the rule's key: see rule.Resource. "" means
	// no lease.
	Resource string
	// Burst is the least number of units that may pass at once. Default: 1 unit. The bucket has at least the units of 0.1 s.
	Burst int64
}

// leaseRule is what a rule with a lease has prepared.
type leaseRule struct {
	resource rule.Resource
	window   window
}

// leaseFacts are what an Answer has of leases.
type leaseFacts struct {
	leases bool         // a rule has a lease
	leased []leaseTaken // what the request has taken
}

// leaseTaken are units of a lease that a request has taken.
type leaseTaken struct {
	bucket.Taken

	enforced bool
}

// opLease is the value of Result.op until takeLeases.
const opLease = -5

// checkLease refuses settings that a rule with a lease cannot have.
func checkLease(c *Config, r *Rule) error {
	var other string
	switch {
	case r.Lease.Resource == "":
		return nil
	case c.Leases == nil:
		return errors.New("it has a lease, and Config.Leases is nil: set it to a table of package internal/lease/bucket")
	case len(r.Policies) > 0:
		other = "limits"
	case len(r.Overrides) > 0:
		other = "overrides"
	case r.Quota != "":
		other = "a quota"
	case r.InFlight > 0:
		other = "in_flight"
	case r.Soft > 0:
		other = "a soft limit"
	case r.NeedsEnd() != "":
		other = r.NeedsEnd()
	case r.Ban.For > 0:
		other = "a ban"
	case r.Exceed.Action == Delay:
		other = "the action delay"
	case r.Exceed.Hard.Limit.HasPeriod():
		other = "a hard limit"
	case r.Fallback == FallbackLocal:
		other = "the fallback local"
	case r.Lease.Burst < 0 || r.Lease.Burst > headgate.MaxUnits:
		return errors.New("the burst of its lease is out of range: use 1 or more")
	default:
		return nil
	}
	return errors.New("it has a lease and " + other + ": use two rules, or leave out one of them")
}

// prepareLease prepares a rule with a lease.
func (p *prepared) prepareLease() error {
	resource, err := rule.ParseResource(p.Lease.Resource, p.Key)
	if err != nil {
		return err
	}
	p.lease = &leaseRule{resource, window{policy: p.Name, beside: p.Exceed.Action == Degrade, algorithm: headgate.TokenBucket}}
	return nil
}

// addLease adds the Result of a rule with a lease. takeLeases decides it.
func (s *set) addLease(p *prepared, req *headgate.Request, a *Answer, cost int64) {
	from := len(a.keys)
	keys, shared := p.AppendKey(append(a.keys, p.space...), req)
	key := unsafe.String(unsafe.SliceData(keys[from:]), len(keys)-from) //nolint:gosec // A copy would be an allocation.
	if shared && p.Missing == rule.MissingRefuse {
		a.keys = keys
		s.addLacking(p, p.Rule, req, a, key, 0)
		return
	}
	name := len(keys)
	a.keys = p.lease.resource.Append(keys, req)
	r := a.nextResult()
	r.Rule, r.Window, r.Policy, r.Limit, r.Stage, r.Number = p.Rule, 0, p.Name, headgate.Limit{}, "", p.number
	r.Shared, r.Fallback, r.window, r.from, r.key, r.cost = shared, false, &p.lease.window, p, key, cost
	r.mode, r.full, r.member, r.Recalled = req.Kind, false, nil, false
	if req.Peek {
		r.mode = headgate.Peek
	}
	r.resource = unsafe.String(unsafe.SliceData(a.keys[name:]), len(a.keys)-name) //nolint:gosec // As above.
	r.op, a.leases = opLease, true
	if cost < 0 {
		r.op = opNone
	}
}

// takeLeases decides the Results of rules with a lease. It waits for the first lease of a resource, and returns how long
// it has waited. A refusal by an enforced rule makes the store take nothing, unless the rules are independent.
func (s *set) takeLeases(ctx context.Context, a *Answer, patience time.Duration) (waited time.Duration) {
	if !a.leases {
		return 0
	}
	if s.config.StoreTimeout > 0 && a.asked() {
		patience = min(patience, s.config.StoreTimeout/2) // The store has the rest of its budget.
	}
	refused := a.lacking && !s.independent
	for i := range a.Results {
		r := &a.Results[i]
		if r.op != opLease {
			continue
		}
		together := r.Enforced() && !s.independent
		if together && refused && r.mode == headgate.Take {
			r.mode = headgate.Peek
		}
		waited += s.takeLease(ctx, a, r, patience-waited)
		if together && r.Decision.Verdict == headgate.Deny && !r.window.beside && !refused {
			refused = true
			a.unlease(false)
			a.peekEnforced()
		}
	}
	return waited
}

// peekEnforced makes the store decide the enforced rules without taking anything.
func (a *Answer) peekEnforced() {
	for i := range a.Results {
		if r := &a.Results[i]; r.op >= 0 && r.Enforced() && !r.window.beside {
			r.mode = headgate.Peek
			a.request.ops[r.op].Kind = headgate.Peek
		}
	}
}

// takeLease decides one Result. Without a lease, the fallback of the rule decides.
func (s *set) takeLease(ctx context.Context, a *Answer, r *Result, patience time.Duration) time.Duration {
	ask := bucket.Ask{Cost: r.cost, Burst: r.Rule.Lease.Burst, Kind: r.mode, Patience: patience, Group: r.Rule.Lease.Resource}
	var out bucket.Outcome
	name := unsafe.Slice(unsafe.StringData(r.resource), len(r.resource)) //nolint:gosec // Take does not write to it.
	err := s.config.Leases.Take(ctx, name, &ask, &out)
	r.op = opDecided
	switch {
	case err == nil:
		r.Decision, r.Limit = out.Decision, rateLimit(out.Rate, out.Decision.Limit)
		if out.Taken != (bucket.Taken{}) {
			a.leased = append(a.leased, leaseTaken{out.Taken, r.Enforced()})
		}
		return out.Waited
	case errors.Is(err, bucket.ErrLost): // on_loss has decided.
		r.Decision = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.StoreUnavailable}
	default:
		r.Fallback, r.Decision = true, unavailable(r)
	}
	if errors.Is(err, context.Canceled) {
		err = callerGone(err)
	}
	if a.StoreError == nil {
		a.StoreError = err
	}
	return out.Waited
}

// rateLimit gives a rate of thousandths of a unit a second as a limit.
func rateLimit(rate, size int64) headgate.Limit {
	const thousand = 1000
	if rate%thousand == 0 {
		return headgate.Limit{Count: rate / thousand, Per: time.Second, Burst: size}
	}
	return headgate.Limit{Count: rate, Per: thousand * time.Second, Burst: size}
}

// unlease returns, once, the units of leases that a request has taken: those of enforced rules, or all.
func (a *Answer) unlease(all bool) {
	for i := range a.leased {
		if all || a.leased[i].enforced {
			a.leased[i].Return()
		}
	}
}

// releaseLeases releases the leases of the resources that no rule of the next set has.
func (s *set) releaseLeases(next *set) {
	if s.config.Leases == nil {
		return
	}
	for i := range s.rules {
		resource := s.rules[i].Lease.Resource
		if resource != "" && !next.spends(resource) {
			s.config.Leases.Release(resource)
		}
	}
}

// spends reports whether a rule has the lease of a resource.
func (s *set) spends(resource string) bool {
	for i := range s.rules {
		if s.rules[i].Lease.Resource == resource {
			return true
		}
	}
	return false
}
