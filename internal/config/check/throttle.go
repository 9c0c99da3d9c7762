package check

import (
	"fmt"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

// Throttle finds conflicts between the throttle and the rest of the configuration: a rule with its
// name, a tenant for which the identity has no facts, and rules that set one of its headers.
func Throttle(t *throttler.Config, rules []guard.Rule, id Identity, blamed Blamed) []Finding {
	found := &findings{known: blamed}
	for i := range rules {
		if rules[i].Name == throttler.Name {
			found.add(fmt.Sprintf("rules[%d].name", i), fmt.Sprintf("callers see the throttle under the name %q", throttler.Name),
				"use another name")
		}
		if set := rules[i].Exceed.Header; throttler.OwnHeader(set) && !found.blamed(exceedHeader(i)) {
			found.add(exceedHeader(i), set+" is a header of the throttle", ownHeader)
		}
	}
	found.classes(t)
	const tenant = "throttle.tenant"
	if t.Tenant == (rule.Part{}) || found.blamed(tenant) {
		return found.all
	}
	if t.Tenant.OfMatch() {
		found.add(tenant, t.Tenant.String()+" names a part of a match, and the throttle has none",
			"write another part of requests as tenant, like header:X-Client-Id")
	}
	if problem, fix := id.missing(t.Tenant); problem != "" {
		found.add(tenant, t.Tenant.String()+" cannot be determined: "+problem, fix)
	}
	return found.all
}

// classes finds matches that no request can have.
func (f *findings) classes(t *throttler.Config) {
	for _, err := range Unjoin(throttler.CheckClasses(t.Classes, rule.Folds{})) {
		bad, ok := errortype.As[*rule.RuleError](err)
		if !ok {
			continue
		}
		if path := fmt.Sprintf("throttle.classes[%d].%s", bad.Rule, bad.Field); !f.blamed(path) {
			f.add(path, bad.Problem, bad.Fix)
		}
	}
}
