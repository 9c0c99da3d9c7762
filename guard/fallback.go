package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate/headgate"
)

// ErrCallerGone is, or is wrapped by, the StoreError of a decision that its caller cancelled. The
// store has no fault then. ErrCallerGone wraps context.Canceled.
var ErrCallerGone = fmt.Errorf("guard: the caller left before the store had answered: %w", context.Canceled)

// fallBack decides by each rule's fallback, because the store did not answer.
func (a *Answer) fallBack(ctx context.Context, s *set, err error) {
	a.usual, a.StoreError = false, err
	local := false
	if errors.Is(ctx.Err(), context.Canceled) {
		// The request will not be made, so Local must not count it.
		a.StoreError = callerGone(err)
	} else if s.config.Local != nil {
		local = a.decideLocally(ctx, s)
	}
	for i := range a.Results {
		r := &a.Results[i]
		if r.op == opDecided || r.op == opReserved {
			continue // Fair share has decided this result, or a queue has booked it.
		}
		r.Fallback = r.op != opNone
		switch {
		case r.op == opNone || r.neverFits():
			r.Decision = impossible(r)
		case r.window.kind == kindOperatorBan:
			r.Decision = unavailable(r) // Only the store has the ban.
		case local && r.Rule.Fallback == FallbackLocal:
			r.Decision, r.Limit = a.own.decisions[r.op], r.window.part
		default:
			r.Decision = unavailable(r)
		}
	}
	if local {
		a.settleFull()
	}
}

func callerGone(err error) error {
	if err == context.Canceled { //nolint:errorlint // One that says more is kept.
		return ErrCallerGone
	}
	return fmt.Errorf("%w: %w", ErrCallerGone, err)
}

// neverFits reports whether the rule would let pass by FallbackAllow what its limit never admits, however little is used.
// That needs no store: the request would take, and a meter would bill, units that no request can have.
func (r *Result) neverFits() bool {
	w := r.window
	return r.Rule.Fallback == FallbackAllow && r.mode != headgate.Refund && !w.beside && r.cost > w.room()
}

// unavailable is the decision of a rule without a store to count in.
func unavailable(r *Result) headgate.Decision {
	verdict := headgate.Deny
	if r.Rule.Fallback == FallbackAllow {
		verdict = headgate.Allow
	}
	return headgate.Decision{Verdict: verdict, Reason: headgate.StoreUnavailable, Limit: r.Limit.Count}
}

// decideLocally has Local decide the results of rules with FallbackLocal. It reports false when
// there are none, or when Local fails too.
func (a *Answer) decideLocally(ctx context.Context, s *set) bool {
	enforced := 0
	for enforced < len(a.Results) && a.Results[enforced].Enforced() {
		enforced++
	}
	a.request = &a.own
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

// regroup adds the Ops of the results from..to, all of one mode, that fall back to Local. The
// groups are the same as those of addOps.
func (a *Answer) regroup(from, to int, alone bool) {
	for _, beside := range [...]bool{false, true} {
		var last *Rule
		for i := from; i < to; i++ {
			r := &a.Results[i]
			if r.op == opNone || r.op == opReserved || r.op == opDecided || r.Rule.Fallback != FallbackLocal || r.window.beside != beside ||
				r.window.kind == kindOperatorBan {
				continue
			}
			if r.Rule != last && (alone || beside) || r.mode == headgate.Refund {
				a.nextGroup()
			}
			last = r.Rule
			a.addLocalOp(r)
		}
	}
}

// markFallbacks sets the reason StoreUnavailable where only this instance knows that the limit is
// kept or used up. Other effects of the rule keep their reasons: a departure, a soft limit,
// Degrade and a ban.
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
