package check

import (
	"fmt"
	"iter"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
)

// Limit is a policy, and the path of the value that it was read from.
type Limit struct {
	headgate.Policy

	Path string
}

// EachLimit yields each policy that counts a key of the rule at path. sets are the limits of the
// rule and of each override. EachLimit yields a ban only once if several sets have the same ban.
// It calls blamed just before each yield, so that the caller can note a fault in between.
func EachLimit(r *guard.Rule, path string, sets [][]Limit, blamed Blamed) iter.Seq[Limit] {
	return func(yield func(Limit) bool) {
		bans := map[headgate.Policy]bool{}
		for _, set := range sets {
			for _, l := range set {
				if !blamed(l.Path) && !yield(l) {
					return
				}
			}
			ban, found := banOf(r, set)
			if !found || bans[ban] || blamed(path+".ban") {
				continue
			}
			bans[ban] = true
			if !yield(Limit{ban, path + ".ban.after"}) {
				return
			}
		}
		if r.Exceed.Hard.Limit.HasPeriod() && !blamed(path+".on_exceed") {
			yield(Limit{r.Exceed.Hard, path + ".on_exceed.hard"})
		}
	}
}

// banOf returns the ban of a rule with a set of limits. Without a limit, only a ban with After counts.
func banOf(r *guard.Rule, set []Limit) (ban headgate.Policy, found bool) {
	if r.Ban.For == 0 || len(set) == 0 && !r.Ban.After.HasPeriod() {
		return headgate.Policy{}, false
	}
	var first []headgate.Policy
	if len(set) > 0 {
		first = append(first, set[0].Policy)
	}
	return BanPolicy(r, first), true
}

// Local finds the first limit that one instance cannot count by itself while the shared store is
// unreachable. share is the instance's part of each limit, in percent.
func Local(r *guard.Rule, share int, limits iter.Seq[Limit]) []Finding {
	if r.Fallback != guard.FallbackLocal {
		return nil
	}
	for l := range limits {
		part, err := guard.LocalPolicy(l.Policy, share)
		if err == nil {
			_, err = limit.Compile(part)
		}
		if err != nil {
			return []Finding{localFinding(l, share, err)}
		}
	}
	return nil
}

// LocalInFlight finds a bound of requests in flight of which this instance's part is less than one
// request. path is that of the rule.
func LocalInFlight(r *guard.Rule, path string, share int) []Finding {
	if r.Fallback != guard.FallbackLocal || r.InFlight == 0 {
		return nil
	}
	// The part of a window's count is rounded as the part of this bound.
	_, err := guard.LocalPolicy(headgate.Policy{
		Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: r.InFlight, Per: time.Second},
	}, share)
	little, found := errortype.As[*guard.ShareError](err)
	if !found {
		return nil
	}
	return []Finding{{
		Path: path + ".in_flight",
		Problem: fmt.Sprintf("%d%% of %d, which this instance counts by itself with fallback local, is less than one request",
			share, r.InFlight),
		Fix: fmt.Sprintf("raise local_share to %d%%, or use fallback: deny", little.Least),
	}}
}

func localFinding(l Limit, share int, err error) Finding {
	f := Finding{l.Path, err.Error(), "raise local_share, or use fallback: deny"}
	if little, found := errortype.As[*guard.ShareError](err); found {
		f.Problem = fmt.Sprintf("%d%% of %s, which this instance counts by itself with fallback local, is less than one request",
			share, field.FormatLimit(headgate.Policy{Limit: little.Limit}))
		f.Fix = fmt.Sprintf("raise local_share to %d%%, or use fallback: deny", little.Least)
	} else if bad, found := errortype.As[*limit.PolicyError](err); found {
		f.Problem = fmt.Sprintf("%d%% of %s, which this instance counts by itself with fallback local: %s %s",
			share, field.FormatLimit(l.Policy), bad.Field, bad.Problem)
	}
	return f
}
