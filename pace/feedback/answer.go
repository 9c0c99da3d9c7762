package feedback

import (
	"strings"
	"time"
)

// Outcome is the result of a call with respect to limits.
type Outcome uint8

const (
	// Served calls were not refused by a limit, but may have failed for other reasons.
	Served Outcome = iota
	// Busy calls count as refused only if the answer says when to retry: 503, UNAVAILABLE
	// and RESOURCE_EXHAUSTED, which can also mean that a message is too long.
	Busy
	// Limited calls were refused by a limit: 429, or a gRPC status with a QuotaFailure.
	Limited
)

// names are the keys of the fields in a header map.
type names struct {
	retryAfter, pushback, date, age string
	rateLimit, warning              string
	old, x                          [2]string // the remaining units, and the time of the reset
}

// http.Header has canonical names, and gRPC metadata has names in lower case.
var (
	httpNames = names{
		retryAfter: "Retry-After", date: "Date", age: "Age", rateLimit: "Ratelimit", warning: "Headgate-Warning",
		old: [2]string{"Ratelimit-Remaining", "Ratelimit-Reset"},
		x:   [2]string{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	}
	grpcNames = names{
		retryAfter: "retry-after", pushback: "grpc-retry-pushback-ms", date: "date", age: "age",
		rateLimit: "ratelimit", warning: "headgate-warning",
		old: [2]string{"ratelimit-remaining", "ratelimit-reset"},
		x:   [2]string{"x-ratelimit-remaining", "x-ratelimit-reset"},
	}
)

// These HTTP statuses can be refusals.
const (
	statusTooMany     = 429
	statusUnavailable = 503
)

// HTTP returns the advice of an HTTP response. The header must have canonical names, like
// an http.Header. now is the time at which the response arrived. HTTP allocates nothing.
func HTTP(status int, header map[string][]string, now time.Time) Advice {
	switch status {
	case statusTooMany:
		return httpNames.refusal(Limited, header, now, "429", "429 Retry-After")
	case statusUnavailable:
		return httpNames.refusal(Busy, header, now, "503", "503 Retry-After")
	default:
		return httpNames.served(header, now)
	}
}

// Metadata returns the advice of the header or trailer of a gRPC call. Names are in lower
// case. Metadata reads the same fields as HTTP, and also grpc-retry-pushback-ms.
func Metadata(o Outcome, md map[string][]string, now time.Time) Advice {
	switch o {
	case Limited:
		return grpcNames.refusal(o, md, now, "QuotaFailure", "retry-after")
	case Busy:
		return grpcNames.refusal(o, md, now, "", "retry-after")
	default:
		return grpcNames.served(md, now)
	}
}

// refusal takes the time from Retry-After, or else from the RateLimit fields.
func (n *names) refusal(o Outcome, h map[string][]string, now time.Time, bare, timed string) Advice {
	if d, ok := n.retry(h, now); ok {
		return Advice{Kind: Refused, For: bounded(d), Reason: timed}
	}
	if o == Busy {
		return n.served(h, now) // The provider is overloaded for an unknown time, not by a limit.
	}
	if d, reason := n.spent(h, now); reason != "" && d > 0 {
		return Advice{Kind: Refused, For: bounded(d), Reason: bare}
	}
	return Advice{Kind: Refused, For: firstBackoff, Unsaid: true, Reason: bare}
}

func (n *names) served(h map[string][]string, now time.Time) Advice {
	if d, reason := n.spent(h, now); reason != "" && d > 0 {
		return Advice{Kind: Spent, For: bounded(d), Reason: reason}
	}
	if lines := h[n.warning]; len(lines) > 0 && warns(lines) {
		return Advice{Kind: Warned, Reason: "Headgate-Warning soft-limit"}
	}
	return Advice{}
}

// retry returns the time of Retry-After: seconds, or a date relative to the answer's Date.
func (n *names) retry(h map[string][]string, now time.Time) (time.Duration, bool) {
	if text, ok := one(h, n.pushback); ok {
		if d, ok := decimal(text, time.Millisecond); ok {
			return d, true
		}
	}
	text, ok := one(h, n.retryAfter)
	if !ok {
		return 0, false
	}
	if d, ok := decimal(text, time.Second); ok {
		return d, true
	}
	at, ok := date(text)
	if !ok {
		return 0, false
	}
	return at.Sub(n.theirs(h, now)), true
}

// theirs returns the answer's Date, or now without a valid Date.
func (n *names) theirs(h map[string][]string, now time.Time) time.Time {
	if text, ok := one(h, n.date); ok {
		if at, ok := date(text); ok {
			return at
		}
	}
	return now
}

// maxNumber bounds the text of a field with one number or date, in bytes.
const maxNumber = 64

// one returns the value of a field with exactly one value, without surrounding space.
func one(h map[string][]string, name string) (string, bool) {
	if name == "" {
		return "", false
	}
	values := h[name]
	if len(values) != 1 || len(values[0]) > maxNumber {
		return "", false
	}
	text := strings.Trim(values[0], " \t")
	return text, text != ""
}
