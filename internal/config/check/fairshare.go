package check

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

// ShareContext is what FairShare needs to know about the rest of the configuration.
type ShareContext struct {
	Rules    []guard.Rule
	Identity Identity
	// RequestID is the header of the request's id, "" if no proxy writes one.
	RequestID string
	// KeepsID is set if the proxy keeps the id that a trusted proxy sent.
	KeepsID bool
}

// FairShare finds conflicts between fair share and the rest of the configuration.
func FairShare(f *guard.FairShare, c ShareContext, blamed Blamed) []Finding {
	found := &findings{known: blamed}
	for i := range c.Rules {
		if c.Rules[i].Name == guard.FairShareName {
			found.add(fmt.Sprintf("rules[%d].name", i), fmt.Sprintf("callers see fair_share under the name %q", guard.FairShareName),
				"use another name")
		}
	}
	found.shareClient(f, c.Identity)
	found.shareHeaders(f, c.Rules)
	found.countOnce(f, c)
	if found.blamed("fair_share") || found.shareScope(f) {
		return found.all
	}
	if err := f.Check(); err != nil { // The checks above report all known faults with a better path.
		found.add("fair_share", err.Error(), "compare it with docs/configuration.md")
	}
	return found.all
}

// shareClient finds a client for which the identity has no facts.
func (f *findings) shareClient(share *guard.FairShare, id Identity) {
	const path = "fair_share.client"
	if f.blamed(path) {
		return
	}
	if problem, fix := id.missing(share.Client); problem != "" {
		f.add(path, share.Client.String()+" cannot be determined: "+problem, fix)
	}
}

// shareHeaders finds headers that tell a service what was decided, and that fair share reads
// from requests: see DecisionHeaders.
func (f *findings) shareHeaders(share *guard.FairShare, rules []guard.Rule) {
	readShareHeaders(share, func(name, path string) {
		for i := range rules {
			set := rules[i].Exceed.Header
			if set == "" || set != http.CanonicalHeaderKey(name) || f.blamed(exceedHeader(i)) {
				continue
			}
			f.add(exceedHeader(i), readBy(set, path), ownHeader)
		}
	})
}

// countOnce finds a request id that differs between the attempts of one request: without a
// trusted proxy, the proxy makes a new id for each attempt.
func (f *findings) countOnce(share *guard.FairShare, c ShareContext) {
	if !share.CountOnce || share.IDHeader != c.RequestID || c.KeepsID {
		return
	}
	f.add("fair_share.count_once", share.IDHeader+" differs for each attempt (proxy.request_id), because no proxy is trusted",
		"use a header that clients choose, like header:Idempotency-Key, or set identity.trusted_proxies")
}

// shareScope finds a match or an exempt path that package rule rejects.
func (f *findings) shareScope(share *guard.FairShare) (found bool) {
	one, _ := rule.ParsePart("all") // The client may need a name of the match.
	all := []rule.Rule{{Name: guard.FairShareName, Match: share.Match, Key: []rule.Part{share.Client}}}
	for i, path := range share.Exempt.Paths {
		if path == "" || path == "/*" {
			f.add(exemptPath(i), "matches every path", "leave it out, or use mode: off")
			return true
		}
		all = append(all, rule.Rule{Name: fmt.Sprint("exempt-", i), Match: rule.Match{Path: path}, Key: []rule.Part{one}})
	}
	_, err := rule.NewIndex(all)
	for _, err := range Unjoin(err) {
		bad, ok := errortype.As[*rule.RuleError](err)
		if !ok {
			continue
		}
		path, fix := "fair_share."+strings.Replace(bad.Field, "key[0]", "client", 1), bad.Fix
		if bad.Rule > 0 { // Fair share without any path is none.
			path = exemptPath(bad.Rule - 1)
			fix = strings.Replace(fix, `write "/*" for every path`, "write a path like /healthz or /probes/*", 1)
		}
		f.add(path, bad.Problem, fix)
		found = true
	}
	return found
}

func exemptPath(i int) string { return fmt.Sprintf("fair_share.exempt.paths[%d]", i) }
