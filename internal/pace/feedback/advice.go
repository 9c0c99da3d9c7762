package feedback

import "time"

// Longest is the longest time for which one answer stops the calls. If a provider demands a
// longer pause, the pacer lets calls go again after this time.
const Longest = time.Hour

// Kind is what an answer says about the provider's limit.
type Kind uint8

const (
	// Nothing means that the answer says nothing about the limit.
	Nothing Kind = iota
	// Warned means that the limit is near: slow down.
	Warned
	// Spent means that no units remain for a time. The answered call itself was admitted.
	Spent
	// Refused means that the limit refused the call, so that the provider did not execute it.
	Refused
)

var kindNames = [...]string{"nothing", "warned", "spent", "refused"}

// String returns the kind as one word.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// Advice is what an answer demands of the callers. The zero Advice demands nothing.
type Advice struct {
	Kind Kind
	// For is how long calls must stop, for Spent and Refused, at most Longest. A refusal
	// with 0 ends at the pacer's next window.
	For time.Duration
	// Unsaid means that a refusal names no time. For is then a first estimate.
	Unsaid bool
	// Reason is a short text for logs, such as "429 Retry-After".
	Reason string
	// Implausible means that a field was ignored: its number is neither a plausible delay nor
	// a plausible time.
	Implausible bool
}

// Percent returns the percentage of the limit that this one advice allows.
func (a Advice) Percent() int {
	switch a.Kind {
	case Nothing:
		return 100
	case Warned:
		return Decrease
	default:
		return 0
	}
}

// RefusedFor returns the advice of a refusal for a known time.
func RefusedFor(d time.Duration, reason string) Advice {
	return Advice{Kind: Refused, For: bounded(d), Reason: reason}
}

// Stronger returns the stricter of two advices of one answer. It is implausible if either is.
func Stronger(a, b Advice) Advice {
	a.Implausible = a.Implausible || b.Implausible
	b.Implausible = a.Implausible
	switch {
	case a.Kind != b.Kind:
		if a.Kind > b.Kind {
			return a
		}
		return b
	case a.Unsaid != b.Unsaid: // A named time wins, even if it is shorter than the estimate.
		if b.Unsaid {
			return a
		}
		return b
	case b.For > a.For:
		return b
	default:
		return a
	}
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), Longest) }
