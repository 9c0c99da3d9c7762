package guard

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Mode says whether a rule's decisions are acted on.
type Mode uint8

const (
	// Enforce acts on them.
	Enforce Mode = iota
	// Shadow decides and reports, and refuses nothing.
	Shadow
	// Off does not look at the rule at all.
	Off
)

// String gives the word that configurations use.
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Shadow:
		return "shadow"
	default:
		return "off"
	}
}

// Fallback says how a rule answers when its store cannot.
type Fallback uint8

const (
	// FallbackDeny refuses.
	FallbackDeny Fallback = iota
	// FallbackAllow lets pass.
	FallbackAllow
)

// String gives the word that configurations use.
func (f Fallback) String() string {
	if f == FallbackAllow {
		return "allow"
	}
	return "deny"
}

// Rule is a rule of a guard: whom it counts, against which limits, and what
// happens on excess.
type Rule struct {
	rule.Rule

	// Policies are the rule's limits; a request must pass all of them. The order
	// is the order of the windows in a key's state.
	Policies []headgate.Policy
	// Cost is what a request of unstated cost takes; 0 counts as 1.
	Cost int64
	// Status is the HTTP status of a refusal; 0 is 429.
	Status   int
	Mode     Mode
	Fallback Fallback
}
