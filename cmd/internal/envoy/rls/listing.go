package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Listing lists the limits of domains, sorted, one in each line, in the form of Envoy's service:
//
//	shop.path_/search.client: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false
func Listing(domains []guard.Domain) string {
	var lines []string
	for i := range domains {
		lines = appendListing(lines, domains[i].Name, domains[i].Descriptors)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func appendListing(lines []string, above string, level []guard.Descriptor) []string {
	for i := range level {
		d := &level[i]
		name := above + "." + d.Key
		if d.Value != "" {
			name += "_" + d.Value
		}
		if d.Leaf != nil {
			policies := d.Leaf.Policies
			if d.Leaf.Unlimited {
				policies = []headgate.Policy{{}}
			}
			for _, p := range policies {
				lines = append(lines, fmt.Sprintf("%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t\n",
					oneLine(name), unitOf(p.Limit), p.Limit.Count, d.Leaf.Mode == guard.Shadow, d.Leaf.QuotaMode))
			}
		}
		lines = appendListing(lines, name, d.Descriptors)
	}
	return lines
}

// oneLine keeps a name in one line.
func oneLine(name string) string { return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(name) }
