package check

import (
	"fmt"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/rule"
)

// ProxyContext is what Supply needs to know about the proxy.
type ProxyContext struct {
	Rules    []guard.Rule
	Share    *guard.FairShare  // nil without fair share
	Throttle *throttler.Config // nil without a throttle
	// Certificates is set if the proxy asks clients for certificates.
	Certificates bool
}

// Supply finds parts of keys that the proxy cannot give: all clients would share one key.
func Supply(c ProxyContext, blamed Blamed) []Finding {
	found := &findings{known: blamed}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Mode == guard.Off || r.Match.ForQueries() {
			continue
		}
		for j, part := range r.Key {
			found.supplied(fmt.Sprintf("rules[%d].key[%d]", i, j), part, c.Certificates,
				", or let match name a domain or a descriptor, so that the rule counts only queries of headgate server")
		}
	}
	if f := c.Share; f != nil && f.Mode != guard.Off && !f.Match.ForQueries() {
		found.supplied("fair_share.client", f.Client, c.Certificates, "")
	}
	if t := c.Throttle; t != nil && t.Mode != guard.Off && (c.Share == nil || c.Share.Client != t.Tenant) {
		found.supplied("throttle.tenant", t.Tenant, c.Certificates, "")
	}
	return found.all
}

// supplied adds the fault of one part. queries is the end of the fix for descriptors.
func (f *findings) supplied(path string, part rule.Part, certificates bool, queries string) {
	const shared = " is never in a request to the proxy: all clients would share one key"
	switch supply := part.Supply(); {
	case f.blamed(path):
	case supply == rule.SupplyDescriptors:
		f.add(path, part.String()+shared, "use another key, like header:X-Client-Id"+queries)
	case supply == rule.SupplySubjects && !certificates:
		f.add(path, part.String()+shared, "set proxy.tls.client_ca, so that clients present certificates, or use another key")
	}
}
