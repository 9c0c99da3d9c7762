package check

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/headgate/headgate/guard"
)

const ownHeader = "use another header, like X-Degraded"

// DecisionHeaders finds headers that both tell the service the decision and provide input for
// rules. The proxy removes such headers from requests, so that clients cannot forge a
// decision. A rule that reads such a header would never see the client's value.
func DecisionHeaders(rules []guard.Rule, userIPHeaders []string) []Finding {
	readers := map[string]string{} // By header, the path of the first value that reads it.
	for i := range rules {
		if name := rules[i].Exceed.Header; name != "" {
			readers[name] = ""
		}
	}
	if len(readers) == 0 {
		return nil
	}
	readHeaders(rules, userIPHeaders, func(name, format string, where ...any) {
		name = http.CanonicalHeaderKey(name)
		if by, set := readers[name]; set && by == "" {
			readers[name] = fmt.Sprintf(format, where...)
		}
	})
	var all []Finding
	for i := range rules {
		name := rules[i].Exceed.Header
		if by := readers[name]; by != "" {
			all = append(all, Finding{exceedHeader(i), readBy(name, by), ownHeader})
		}
	}
	return all
}

// readHeaders yields each header that rules read from requests, and the path of the value that
// names it.
func readHeaders(rules []guard.Rule, userIPHeaders []string, yield func(name, format string, where ...any)) {
	for i, name := range userIPHeaders {
		yield(name, "identity.user_ip_headers[%d]", i)
	}
	for i := range rules {
		r := &rules[i]
		for j, part := range r.Key {
			if name, ok := strings.CutPrefix(part.String(), "header:"); ok {
				yield(name, "rules[%d].key[%d]", i, j)
			}
		}
		for name := range r.Match.Headers {
			yield(name, "rules[%d].match.headers.%s", i, name)
		}
		if r.CostHeader != "" {
			yield(r.CostHeader, "rules[%d].cost", i)
		}
	}
}

// readShareHeaders yields each header that fair share reads from requests, and the path of the
// value that names it.
func readShareHeaders(f *guard.FairShare, yield func(name, path string)) {
	if name, ok := strings.CutPrefix(f.Client.String(), "header:"); ok {
		yield(name, "fair_share.client")
	}
	for name := range f.Match.Headers {
		yield(name, "fair_share.match.headers."+name)
	}
	if f.CostHeader != "" {
		yield(f.CostHeader, "fair_share.cost")
	}
	if f.IDHeader != "" {
		yield(f.IDHeader, "fair_share.count_once")
	}
}

func exceedHeader(rule int) string { return fmt.Sprintf("rules[%d].on_exceed.header", rule) }

func readBy(name, path string) string {
	return fmt.Sprintf("%s reads %s, but the proxy removes this header from requests", path, name)
}

// RequestID finds rules that write into the header of the request's id. header is "" if no proxy
// writes one.
func RequestID(rules []guard.Rule, header string) []Finding {
	var all []Finding
	for i := range rules {
		if name := rules[i].Exceed.Header; name != "" && name == header {
			all = append(all, Finding{exceedHeader(i), name + " carries the request's id (proxy.request_id)", ownHeader})
		}
	}
	return all
}
