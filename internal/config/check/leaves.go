package check

import (
	"fmt"
	"iter"

	"github.com/headgate/headgate/guard"
)

// Leaves yields each limit of the domains as a rule with its policies and its fallback, and the
// path of its descriptor. It leaves out unlimited descriptors. The rule is valid until the next one.
func Leaves(domains []guard.Domain) iter.Seq2[string, *guard.Rule] {
	return func(yield func(string, *guard.Rule) bool) {
		for i := range domains {
			d := &domains[i]
			if !eachLeaf(d.Descriptors, "domains."+d.Name, d.Fallback, yield) {
				return
			}
		}
	}
}

func eachLeaf(all []guard.Descriptor, above string, f guard.Fallback, yield func(string, *guard.Rule) bool) bool {
	for i := range all {
		d := &all[i]
		path := ""
		if d.Leaf != nil && len(d.Leaf.Policies) > 0 || len(d.Descriptors) > 0 {
			path = fmt.Sprintf("%s.descriptors[%d]", above, i)
		}
		if d.Leaf != nil && len(d.Leaf.Policies) > 0 &&
			!yield(path, &guard.Rule{Policies: d.Leaf.Policies, Fallback: f}) {
			return false
		}
		if !eachLeaf(d.Descriptors, path, f, yield) {
			return false
		}
	}
	return true
}
