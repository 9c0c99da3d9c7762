package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate/headgate"
)

// ErrCallerGone is, or is wrapped by, the StoreError of a decision that ended
// because its caller had cancelled it, and no fault of the store. It wraps
// context.Canceled.
var ErrCallerGone = fmt.Errorf("guard: the caller left before the store had answered: %w", context.Canceled)

// fallBack lets each rule's fallback answer, since the store could not.
func (a *Answer) fallBack(ctx context.Context, s *set, err error) {
	a.usual, a.StoreError = false, err
	local := false
	if errors.Is(ctx.Err(), context.Canceled) {
		// Nobody is left to be served: what Local counted would be counted for nothing.
		a.StoreError = callerGone(err)
	} else if s.config.Local != nil {
		local = a.decideLocally(ctx, s)
	}
	for i := range a.Results {
		r := &a.Results[i]
		if r.op == opDecided || r.op == opReserved {
			continue // It counts in this process, or was booked before.
		}
		r.Fallback = r.op != opNone
		switch {
		case r.op == opNone:
			r.Decision = impossible(r)
		case local && r.Rule.Fallback == FallbackLocal:
			r.Decision, r.Limit = a.own.decisions[r.op], r.window.part
		default:
			r.Decision = unavailable(r)
		}
	}
	if local {
		a.settleFull(ctx, s, s.config.Local)
	}
}

func callerGone(err error) error {
	if err == context.Canceled { //nolint:errorlint // One that says more is kept.
		return ErrCallerGone
	}
	return fmt.Errorf("%w: %w", ErrCallerGone, err)
}

// unavailable is the decision of a rule that nobody counts for.
func unavailable(r *Result) headgate.Decision {
	verdict := headgate.Deny
	if r.Rule.Fallback == FallbackAllow {
		verdict = headgate.Allow
	}
	return headgate.Decision{Verdict: verdict, Reason: headgate.StoreUnavailable, Limit: r.Limit.Count}
}

// decideLocally lets Local decide the results of rules with FallbackLocal. It reports
// false when there are none, or when Local cannot answer either.
func (a *Answer) decideLocally(ctx context.Context, s *set) bool {
	enforced := 0
	for enforced < len(a.Results) && a.Results[enforced].Enforced() {
		enforced++
	}
	a.asks = &a.own
	a.own.ops = a.own.ops[:0]
	a.regroup(0, enforced, s.independent)
	a.regroup(enforced, len(a.Results), true)
	if len(a.own.ops) == 0 {
		return false
	}
	if err := a.own.put(ctx, s.config.Local); err != nil {
		a.StoreError = fmt.Errorf("%w; and Local: %w", a.StoreError, err)
		return false
	}
	a.local = s.config.Local
	return true
}

// regroup adds the Ops of the results from..to, all of one mode, that fall back to
// Local. They are grouped as ask groups those of all rules.
func (a *Answer) regroup(from, to int, alone bool) {
	for _, beside := range [...]bool{false, true} {
		var last *Rule
		for i := from; i < to; i++ {
			r := &a.Results[i]
			if r.op == opNone || r.op == opReserved || r.Rule.Fallback != FallbackLocal || r.window.beside != beside {
				continue
			}
			if r.Rule != last && (alone || beside) {
				a.nextGroup()
			}
			last = r.Rule
			a.addOp(r, r.window.local)
		}
	}
}

// markFallbacks gives what a fallback has decided the reason of a fallback: that the limit
// is kept, or used up, is what this instance knows alone. What the rule has made of
// it (a departure, a warning, less service, a ban) it would have made anyway.
func (a *Answer) markFallbacks() {
	for i := range a.Results {
		r := &a.Results[i]
		if !r.Fallback {
			continue
		}
		switch r.Decision.Reason {
		case headgate.WithinLimit, headgate.OverLimit, headgate.QueueFull, headgate.WaitTooLong:
			r.Decision.Reason = headgate.StoreUnavailable
		default:
		}
	}
}
