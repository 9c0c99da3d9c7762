package why

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
)

// shareStep describes the share of the client.
func (e *explanation) shareStep() {
	f := e.Config.FairShare
	if f == nil || f.Mode == guard.Off {
		return
	}
	step := admin.WhyStep{Kind: admin.StepFairShare, Name: guard.FairShareName, Mode: f.Mode.String()}
	r := e.stage(guard.FairShareName)
	if r == nil {
		step.Text = "does not see the request"
		if why := e.Guard.ShareExempt(e.Request); why != "" {
			step.Text += ": " + why
		}
		e.add(step)
		return
	}
	e.decided(&step, r, r)
	step.Key = e.keyOf(r)
	step.Share = e.shareOf()
	step.Text = shareText(r, step.Share)
	switch s := step.Share; {
	case s == nil:
	case s.Client != e.Explained.Client:
		step.Unknown = append(step.Unknown, fmt.Sprintf("the client %q has no share of its own yet", e.Explained.Client))
	case s.Default == 0 && s.Size == 0 && s.Admitted == 0:
		step.Unknown = append(step.Unknown, fmt.Sprintf("the client %q is new: its first request gives it a share", e.Explained.Client))
	}
	if r.Decision.Verdict == headgate.Deny {
		step.Actions = e.shareActions(r)
	}
	e.add(step)
}

// shareOf returns the share that the request counts for; nil for a client that no share is known of.
func (e *explanation) shareOf() *admin.WhyShare {
	shares := &e.Explained.Shares
	find := func(name string) int {
		return slices.IndexFunc(shares.Clients, func(s fairshare.Share) bool { return s.Client == name })
	}
	at := find(e.Explained.Client)
	if at < 0 {
		at = find(fairshare.Others)
	}
	s := &admin.WhyShare{
		Capacity: shares.Capacity, Used: shares.Admitted, Clients: len(shares.Clients), Cycle: shares.Length.Seconds(),
		Ends: shares.End.Sub(headgate.Instant(e.Now.UnixNano())).Seconds(), Client: e.Explained.Client,
	}
	if r := e.stage(guard.FairShareName); r != nil && r.Decision.At != 0 {
		s.Ends = shares.End.Sub(r.Decision.At).Seconds()
	}
	if shares.Length == 0 {
		return nil
	}
	if at >= 0 {
		one := &shares.Clients[at]
		s.Client, s.Default, s.Size, s.Admitted, s.Refused = one.Client, one.Default, one.Size, one.Admitted, one.Refused
	}
	return s
}

// shareText says what fair share decides.
func shareText(r *guard.Result, s *admin.WhyShare) string {
	d := &r.Decision
	switch {
	case d.Reason == headgate.AnonymousClient:
		return fmt.Sprintf("%s the request: it has no %s, and anonymous is not set", refuses(r), r.Rule.Key[0])
	case d.Verdict == headgate.Deny && d.Reason == headgate.Never:
		return fmt.Sprintf("%s the request: its cost of %d is above the whole capacity", refuses(r), r.Cost())
	case d.Verdict == headgate.Deny && s != nil:
		return fmt.Sprintf("%s the request: the client has used %d of the %d units that it can have in this cycle; again in %s",
			refuses(r), s.Admitted, d.Limit, explain.Span(d.RetryAfter))
	case s != nil:
		return fmt.Sprintf("admits the request: the client has used %d of the %d units that it can have in this cycle", s.Admitted, d.Limit)
	default:
		return "admits the request"
	}
}

// refuses is what an enforced step does, or would do without shadow.
func refuses(r *guard.Result) string {
	if r.Enforced() {
		return "refuses"
	}
	return "would refuse"
}
