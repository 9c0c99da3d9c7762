package feedback

import "time"

// Longest bounds the time for which one answer is obeyed: who is to wait longer asks
// once in so much time.
const Longest = time.Hour

// Kind is what an answer says of the limit.
type Kind uint8

const (
	// Nothing has been said of it.
	Nothing Kind = iota
	// Warned is that the limit is near: slow down.
	Warned
	// Spent is that nothing remains for a time. The answer's own call has passed.
	Spent
	// Refused is that the call was refused by it, and has not been done.
	Refused
)

var kindNames = [...]string{"nothing", "warned", "spent", "refused"}

// String gives a word for it.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// Advice is what an answer asks of those who call. The zero Advice is none.
type Advice struct {
	Kind Kind
	// For is how long nothing is to go, for Spent and Refused, up to Longest. A refusal
	// for 0 is over with the pacer's next window.
	For time.Duration
	// Unsaid is that a refusal said no time, and For is nothing but a first guess.
	Unsaid bool
	// Reason is in few words, for logs: "429 Retry-After".
	Reason string
}

// Percent gives how much of the limit may go for the advice alone.
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

// RefusedFor gives the advice of a refusal that said for how long.
func RefusedFor(d time.Duration, reason string) Advice {
	return Advice{Kind: Refused, For: bounded(d), Reason: reason}
}

// Stronger gives that of two advices of one answer which asks for more.
func Stronger(a, b Advice) Advice {
	switch {
	case a.Kind != b.Kind:
		if a.Kind > b.Kind {
			return a
		}
		return b
	case a.Unsaid != b.Unsaid: // What was said counts, be it shorter than our guess.
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
