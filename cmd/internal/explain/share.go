package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// cycleStart returns the start of the cycle that contains now. Fair share decides at that
// time, because a client's usable units depend on the rest of the cycle.
func cycleStart(c *config.Config, now time.Time) headgate.Instant {
	at := headgate.Instant(now.UnixNano())
	if f := c.FairShare; f != nil {
		at -= at % headgate.Instant(f.Cycle)
	}
	return at
}

// writeShare describes the client that fair share counts the request for, and its share.
func (e *explanation) writeShare(b *strings.Builder, r *guard.Result) {
	f, req, client := e.Config.FairShare, e.Seen(), r.Rule.Key[0]
	b.WriteString("\nfair share")
	if !r.Enforced() {
		b.WriteString(", which is in mode shadow: it reports this result, and does not enforce it")
	}
	b.WriteByte('\n')
	name, named := client.AppendClient(nil, req)
	switch {
	case named:
		linef(b, "client", "%s, by %s", strconv.Quote(string(name)), f.Client)
	case f.Anonymous == "":
		linef(b, "client", "none: the request has no %s", f.Client)
		e.writeDecision(b, r, []guard.Result{*r})
		return
	default:
		name = []byte(rule.ClientName(f.Anonymous))
		linef(b, "client", "%s, for all requests without %s", strconv.Quote(string(name)), f.Client)
	}
	e.writeShareOf(b, string(name), r)
	linef(b, "cost", "%s", costText(r.Rule, req))
	e.writeDecision(b, r, []guard.Result{*r})
	if e.Answer.Verdict == headgate.Deny && r.Decision.Verdict == headgate.Allow {
		linef(b, "returned", "%s", "the cost, because a rule refuses the request")
	}
}

// writeExempt says why fair share ignores the request, if it does.
func (e *explanation) writeExempt(b *strings.Builder) {
	why := e.Guard.ShareExempt(&e.exchange.Request)
	if why == "" {
		return
	}
	word := "exempt"
	if rest, outside := strings.CutPrefix(why, "match "); outside {
		word, why = "match", rest
	}
	b.WriteString("\nfair share\n")
	linef(b, word, "%s: fair share does not see the request, and does not count it", why)
}

// writeShareOf describes a client's share of the capacity, beside the other known clients.
func (e *explanation) writeShareOf(b *strings.Builder, name string, r *guard.Result) {
	shares, _ := e.Guard.Shares()
	find := func(name string) int {
		return slices.IndexFunc(shares.Clients, func(s fairshare.Share) bool { return s.Client == name })
	}
	at, who := find(name), ""
	if at < 0 {
		at, who = find(fairshare.Others), ", that of "+fairshare.Others+", because the client has no share of its own"
	}
	if at < 0 {
		return // Fair share has not decided the request.
	}
	s := &shares.Clients[at]
	if s.Pinned {
		who = fmt.Sprintf(", pinned with weight %d", s.Weight)
	}
	linef(b, "share", "default share %d of %s in %s%s; %d of %d left", s.Default,
		field.Counted(shares.Capacity, "unit"), span(shares.Length), who, r.Decision.Remaining, r.Decision.Limit)
	if others := len(shares.Clients) - 1; others > 0 {
		linef(b, "beside", "%s", besideText(&shares, at))
	}
}

// besideText names the other clients, at most the first few.
func besideText(shares *fairshare.Shares, without int) string {
	var names []string
	for i := range shares.Clients {
		if s := &shares.Clients[i]; i != without {
			names = append(names, fmt.Sprintf("%s with %d", s.Client, s.Default))
		}
	}
	return some(names)
}
