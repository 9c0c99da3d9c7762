package report

import (
	"fmt"
	"sync/atomic"
)

// UpstreamError is a way in which the upstream fails.
type UpstreamError uint8

const (
	// UpstreamRefused: no connection could be made.
	UpstreamRefused UpstreamError = iota
	// UpstreamReset: the upstream ended the connection before it answered.
	UpstreamReset
	// UpstreamTimeout: the upstream did not answer in time.
	UpstreamTimeout
	// UpstreamOther is the rest: an answer that is no HTTP, say.
	UpstreamOther
	upstreamErrorCount
)

var upstreamErrorNames = [upstreamErrorCount]string{"refused", "reset", "timeout", "other"}

// String gives the word that metrics show.
func (e UpstreamError) String() string {
	if e < upstreamErrorCount {
		return upstreamErrorNames[e]
	}
	return fmt.Sprintf("upstream_error(%d)", uint8(e))
}

// UpstreamErrors lists every kind, in the order of the constants.
func UpstreamErrors() []UpstreamError {
	all := make([]UpstreamError, upstreamErrorCount)
	for i := range all {
		all[i] = UpstreamError(i)
	}
	return all
}

// CodeClass tells answers apart: by the hundred of their status, and those whose
// client went away first.
type CodeClass uint8

// The classes; ClassCanceled is no status: the client was gone.
const (
	ClassCanceled CodeClass = iota
	Class1xx
	Class2xx
	Class3xx
	Class4xx
	Class5xx
	classCount
)

var classNames = [classCount]string{"canceled", "1xx", "2xx", "3xx", "4xx", "5xx"}

// String gives the word that metrics show.
func (c CodeClass) String() string {
	if c < classCount {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// CodeClasses lists every class, in the order of the constants.
func CodeClasses() []CodeClass {
	all := make([]CodeClass, classCount)
	for i := range all {
		all[i] = CodeClass(i)
	}
	return all
}

// Traffic is what a front serves. The zero Traffic is ready to use.
type Traffic struct {
	// InFlight is the requests being served now, and Waiting those of them that
	// wait for their departure.
	InFlight, Waiting atomic.Int64
	// Decision is how long decisions took.
	Decision Histogram

	answers  [classCount]atomic.Uint64
	failures [upstreamErrorCount]atomic.Uint64
}

// Answered counts a request by the status of its answer; 0 means that it was
// canceled. Statuses that are none count as 5xx.
func (t *Traffic) Answered(status int) {
	class := Class5xx
	if status >= 0 && status < 600 {
		class = CodeClass(status / 100)
	}
	t.answers[class].Add(1)
}

// Answers gives how many requests were answered with a class of status.
func (t *Traffic) Answers(c CodeClass) uint64 { return t.answers[c].Load() }

// UpstreamFailed counts a failure of the upstream.
func (t *Traffic) UpstreamFailed(e UpstreamError) { t.failures[e].Add(1) }

// UpstreamFailures gives how often the upstream failed in a way.
func (t *Traffic) UpstreamFailures(e UpstreamError) uint64 { return t.failures[e].Load() }
