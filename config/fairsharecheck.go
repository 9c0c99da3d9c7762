package config

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// checkFairShare finds what fair share and the rest of the configuration mean for each
// other.
func (r *reader) checkFairShare(c *Config) {
	f := c.FairShare
	if f == nil {
		return
	}
	for i := range c.Rules {
		if c.Rules[i].Name == guard.FairShareName {
			r.fault(r.find(fmt.Sprintf("rules[%d].name", i)),
				quote(guard.FairShareName)+" is what callers see of fair_share", "use another name")
		}
	}
	r.checkShareClient(c, f)
	r.checkShareMarks(c)
	r.checkCountOnce(c, f)
	if r.blamed("fair_share") {
		return
	}
	if r.checkScope(f) {
		return
	}
	if err := f.Check(); err != nil { // Nothing is known that would come here.
		r.fault(r.find("fair_share"), err.Error(), "compare it with docs/configuration.md")
	}
}

// checkScope finds a match or an exempt path that package rule refuses.
func (r *reader) checkScope(f *guard.FairShare) (found bool) {
	all, paths := []rule.Rule{{Name: guard.FairShareName, Match: f.Match, Key: []rule.Part{f.Client}}}, f.Exempt.Paths
	for i, path := range paths {
		if path == "" || path == "/*" {
			r.fault(r.find(fmt.Sprintf("fair_share.exempt.paths[%d]", i)), "is every path",
				"leave it out, or use mode: off")
			return true
		}
		all = append(all, rule.Rule{Name: fmt.Sprint("exempt-", i), Match: rule.Match{Path: path}, Key: []rule.Part{f.Client}})
	}
	_, err := rule.NewIndex(all)
	for _, err := range unjoin(err) {
		bad, ok := errors.AsType[*rule.RuleError](err)
		if !ok {
			continue
		}
		path := "fair_share." + bad.Field
		if bad.Rule > 0 {
			path = fmt.Sprintf("fair_share.exempt.paths[%d]", bad.Rule-1)
		}
		r.fault(r.find(path), bad.Problem, bad.Fix)
		found = true
	}
	return found
}

// checkShareClient finds a client that the identity has nothing for.
func (r *reader) checkShareClient(c *Config, f *guard.FairShare) {
	const path = "fair_share.client"
	if r.blamed(path) {
		return
	}
	if problem, fix := r.baseless(c, f.Client); problem != "" {
		r.fault(r.find(path), f.Client.String()+" has nothing to go by: "+problem, fix)
	}
}

// checkShareMarks finds headers that tell a service what was decided, and that fair
// share reads from requests: see checkMarks.
func (r *reader) checkShareMarks(c *Config) {
	c.readShareHeaders(func(name, path string) {
		for i := range c.Rules {
			mark := c.Rules[i].Exceed.Header
			where := fmt.Sprintf("rules[%d].on_exceed.header", i)
			if mark == "" || mark != http.CanonicalHeaderKey(name) || r.blamed(where) {
				continue
			}
			r.fault(r.find(where), fmt.Sprintf("%s is read by %s, and what clients send in it would not reach the service", mark, path),
				"use a header of your own, like X-Degraded")
		}
	})
}

// checkCountOnce finds an id of requests that the proxy makes anew for each attempt:
// it keeps that of a trusted proxy alone.
func (r *reader) checkCountOnce(c *Config, f *guard.FairShare) {
	trusted := len(c.Identity.TrustedProxies) > 0 || c.Identity.TrustUnix || r.blamed("identity")
	if !f.CountOnce || f.IDHeader != c.Proxy.RequestID || c.Proxy.Upstream == nil || trusted {
		return
	}
	r.fault(r.find("fair_share.count_once"), f.IDHeader+" is made anew for each attempt (proxy.request_id), as no proxy is trusted",
		"use a header that clients choose, like header:Idempotency-Key, or set identity.trusted_proxies")
}
