package rule

import "github.com/headgate/headgate"

// Missing says what a rule does with a request that lacks a part of its key.
type Missing uint8

const (
	// MissingShared counts all requests that lack the same parts together.
	MissingShared Missing = iota
	// MissingSkip does not apply the rule to the request.
	MissingSkip
	// MissingRefuse refuses the request.
	MissingRefuse
)

// missingNames has the words of configurations, in the order of the constants.
var missingNames = [...]string{"shared", "skip", "refuse"}

// String returns the word that configurations use.
func (m Missing) String() string { return missingNames[min(int(m), len(missingNames)-1)] }

// Missings lists the values, in the order of the constants.
func Missings() []Missing { return []Missing{MissingShared, MissingSkip, MissingRefuse} }

// Lacks returns the position of the first part of the key that the request does not have, as AppendKey finds it. It reports false if
// the request has all parts. Lacks allocates nothing.
func (r *Rule) Lacks(req *headgate.Request) (part int, lacks bool) {
	for i, p := range r.Key {
		present := true
		switch {
		case p.kind == partNone || !p.Optional():
		case p.isAddress():
			present = p.address(req).IsValid()
		default:
			_, present = p.lookup(req)
		}
		if !present {
			return i, true
		}
	}
	return 0, false
}

// Optional reports whether a request may lack the part.
func (p Part) Optional() bool {
	switch p.kind {
	case partAll, partPath, partPathName, partMethod, partHost, partHostName:
		return false
	default:
		return true
	}
}
