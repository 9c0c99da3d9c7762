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
	a := answer{names: &httpNames, fields: header, now: now}
	switch status {
	case statusTooMany:
		return a.refusal(Limited, "429", "429 Retry-After")
	case statusUnavailable:
		return a.refusal(Busy, "503", "503 Retry-After")
	default:
		return a.served()
	}
}

// Metadata returns the advice of the header or trailer of a gRPC call. Names are in lower
// case. Metadata reads the same fields as HTTP, and also grpc-retry-pushback-ms.
func Metadata(o Outcome, md map[string][]string, now time.Time) Advice {
	a := answer{names: &grpcNames, fields: md, now: now}
	switch o {
	case Limited:
		return a.refusal(o, "QuotaFailure", "retry-after")
	case Busy:
		return a.refusal(o, "", "retry-after")
	default:
		return a.served()
	}
}

// answer reads the fields of one answer, which arrived at now.
type answer struct {
	*names

	fields      map[string][]string
	now         time.Time
	implausible bool // a field was ignored for its time
}

// refusal reads the time from Retry-After, or else from the RateLimit fields.
func (a *answer) refusal(o Outcome, bare, timed string) Advice {
	if d, ok := a.retry(); ok {
		return Advice{Kind: Refused, For: bounded(d), Reason: timed, Implausible: a.implausible}
	}
	if o == Busy {
		return a.served() // The provider is overloaded for an unknown time, not by a limit.
	}
	if d, reason := a.spent(); reason != "" && d > 0 {
		return Advice{Kind: Refused, For: bounded(d), Reason: bare, Implausible: a.implausible}
	}
	return Advice{Kind: Refused, For: firstBackoff, Unsaid: true, Reason: bare, Implausible: a.implausible}
}

func (a *answer) served() Advice {
	if d, reason := a.spent(); reason != "" && d > 0 {
		return Advice{Kind: Spent, For: bounded(d), Reason: reason, Implausible: a.implausible}
	}
	if lines := a.fields[a.warning]; len(lines) > 0 && warns(lines) {
		return Advice{Kind: Warned, Reason: "Headgate-Warning soft-limit", Implausible: a.implausible}
	}
	return Advice{Implausible: a.implausible}
}

// retry returns the time of Retry-After: a number, or a date relative to the answer's Date.
func (a *answer) retry() (time.Duration, bool) {
	if text, ok := a.one(a.pushback); ok {
		if q, ok := decimal(text); ok {
			if d, ok := a.pause(q, time.Millisecond); ok {
				return d, true
			}
		}
	}
	text, ok := a.one(a.retryAfter)
	if !ok {
		return 0, false
	}
	if q, ok := decimal(text); ok {
		return a.pause(q, time.Second)
	}
	at, ok := date(text)
	return at.Sub(a.theirs()), ok
}

// theirs returns the answer's Date, or now without a valid Date.
func (a *answer) theirs() time.Time {
	if text, ok := a.one(a.date); ok {
		if at, ok := date(text); ok {
			return at
		}
	}
	return a.now
}

// maxNumber bounds the text of a field with one number or date, in bytes.
const maxNumber = 64

// one returns the value of a field with exactly one value, without surrounding space.
func (a *answer) one(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	values := a.fields[name]
	if len(values) != 1 || len(values[0]) > maxNumber {
		return "", false
	}
	text := strings.Trim(values[0], " \t")
	return text, text != ""
}
