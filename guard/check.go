package guard

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

var errBanIsNoLimit = errors.New("ban is no algorithm of a limit: use Ban beside the limits")

// ErrNoStore says that a guard has rules and no Store.
var ErrNoStore = errors.New("there is no Store: make one with memory.New")

// checkRule finds rules that could not decide, or whose decisions could not take effect. Package
// config checks more, with positions.
func (g *Guard) checkRule(c *Config, r *Rule) error {
	switch {
	case g.store == nil && r.Lease.Resource == "":
		return ErrNoStore
	case c.FairShare != nil && r.Name == FairShareName:
		return errors.New("its name is that of fair share: choose another")
	case len(r.Key) == 0:
		return errors.New("it has no key: write who is counted")
	case r.Missing > rule.MissingRefuse:
		return fmt.Errorf("missing %d is not known: use the constants", r.Missing)
	case r.Mode > Off || r.Fallback > FallbackError:
		return fmt.Errorf("mode %d or fallback %d is not known: use the constants", r.Mode, r.Fallback)
	case r.Switch.check(r) != nil:
		return r.Switch.check(r)
	case r.TrialOf != "" && (r.Mode != Shadow || r.Quota != "" || r.Lease.Resource != "" || r.InFlight > 0 || r.Ban.For > 0):
		return errors.New("a trial counts limits in mode shadow: leave out quota, lease, in_flight and ban")
	case r.Cost < 0 || r.Cost > headgate.MaxUnits || r.MaxCost < 0 || r.MaxCost > headgate.MaxUnits:
		return headgate.ErrBadCost
	case r.Soft < 0 || r.Soft > 100:
		return fmt.Errorf("its soft limit is %d percent: use 1 to 99", r.Soft)
	case r.Ban.For < 0:
		return errors.New("its ban is negative: use 0 or more")
	}
	for _, check := range [...]error{
		checkLease(c, r), checkHeader(r.CostHeader), checkHeader(r.Settle), checkBytes(r), checkOverdraft(r),
		checkOutcome(r), r.checkGrowth(),
	} {
		if check != nil {
			return check
		}
	}
	if err := checkExceed(&r.Exceed); err != nil {
		return err
	}
	return g.checkLocal(c, r)
}

// ErrNoLocal says that a rule has FallbackLocal without a separate Local.
var ErrNoLocal = errors.New("fallback local has no store of its own: set Config.Local to one in memory, or use deny")

// checkLocal checks that a rule with FallbackLocal has a Local.
func (g *Guard) checkLocal(c *Config, r *Rule) error {
	switch {
	case r.Fallback != FallbackLocal:
		return nil
	case c.Local == nil || c.Local == g.store: // A store is no fallback for itself.
		return ErrNoLocal
	default:
		return nil
	}
}

// checkOutcome refuses rules whose units cannot be returned or charged later.
func checkOutcome(r *Rule) error {
	if !r.byOutcome() {
		return nil
	}
	for _, status := range r.Count {
		if status < 200 || status > 599 {
			return fmt.Errorf("count has status %d: use 200 to 599", status)
		}
	}
	lists := [][]headgate.Policy{r.Policies, {r.Exceed.Hard}}
	for i := range r.Overrides {
		lists = append(lists, r.Overrides[i].Policies)
	}
	switch {
	case (r.InFlight > 0 || r.Ban.For > 0) && len(r.Policies) == 0 && (!r.BansAnswers() || r.Settle != ""):
		return errors.New("count and settle need a limit: write one")
	case r.Exceed.Action == Delay:
		return errors.New("count and settle cannot return booked departures: use another action than delay")
	}
	for _, p := range slices.Concat(lists...) {
		switch {
		case p.Algorithm == headgate.LeakyBucket:
			return errors.New("count and settle cannot return the departures of leaky_bucket: use another algorithm")
		case p.Hold > 0 && r.Settles():
			return errors.New("settle cannot charge prefetched units: leave out prefetch, or settle")
		case r.Overdraft > 0 && p.CountRejected:
			return errors.New("its overdraft would make a debt of refused attempts, because CountRejected is set: leave out one of them")
		}
	}
	return nil
}

func checkExceed(x *Exceed) error {
	least, most := 400, 599
	if x.Action == Redirect {
		least, most = 300, 399
	}
	switch {
	case x.Action > Drop:
		return fmt.Errorf("action %d is not known: use the constants", x.Action)
	case x.MaxWaiters < 0 || x.MaxWait < 0:
		return errors.New("max_waiters or max_wait is negative: use 0 or more")
	case x.Status != 0 && (x.Status < least || x.Status > most):
		return fmt.Errorf("status %d is not valid for %s: use %d to %d", x.Status, x.Action, least, most)
	case x.Action == Redirect && x.Location == "":
		return errors.New("redirect has no location: give it one")
	case x.Action != Degrade:
		return nil
	case x.Header == "":
		return errors.New("degrade has no header to mark requests with: give it one")
	}
	return checkHeader(x.Header)
}

// checkHeader refuses a name that fronts cannot look up in a request.
func checkHeader(name string) error {
	if canonical := textproto.CanonicalMIMEHeaderKey(name); name != canonical {
		return fmt.Errorf("header %q is looked up as it is spelled: write %q", name, canonical)
	}
	return nil
}
