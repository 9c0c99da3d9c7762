package feedback

import (
	"strings"
	"time"
)

// Outcome is what became of a call, as far as limits go.
type Outcome uint8

const (
	// Served calls were not refused by a limit, whatever else became of them.
	Served Outcome = iota
	// Busy calls were refused if the answer says when to come again: 503, UNAVAILABLE, and
	// RESOURCE_EXHAUSTED, which may also say that a message is too long.
	Busy
	// Limited calls were refused by a limit: 429, and what says so.
	Limited
)

// names are the names of fields as they are spelled in a map.
type names struct {
	retryAfter, pushback, date, age string
	rateLimit, warning              string
	old, x                          [2]string // what remains, and until when
}

// HTTP spells fields canonically, gRPC in lower case.
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

// Statuses of HTTP that refuse.
const (
	statusTooMany     = 429
	statusUnavailable = 503
)

// HTTP tells what an answer of HTTP asks. The header has its names in canonical form,
// as an http.Header has. Now is when the answer came. It allocates nothing.
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

// Metadata tells what the header or the trailer of a gRPC call asks, whose names are in
// lower case: the fields of HTTP, and gRPC's own grpc-retry-pushback-ms.
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

// refusal is told by Retry-After before all else, then by the time at which there is more.
func (n *names) refusal(o Outcome, h map[string][]string, now time.Time, bare, timed string) Advice {
	if d, ok := n.retry(h, now); ok {
		return Advice{Kind: Refused, For: bounded(d), Reason: timed}
	}
	if o == Busy {
		return n.served(h, now) // Something failed, and nobody knows for how long.
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

// retry gives the time of Retry-After: seconds, or a date by the clock of the answer.
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

// theirs gives the provider's time at which it answered, else ours.
func (n *names) theirs(h map[string][]string, now time.Time) time.Time {
	if text, ok := one(h, n.date); ok {
		if at, ok := date(text); ok {
			return at
		}
	}
	return now
}

// maxNumber bounds the text of a field that holds one number or date.
const maxNumber = 64

// one gives the only value of a field that holds one, without space around it.
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
