package report

import (
	"fmt"
	"sync/atomic"
)

// UpstreamError is a kind of failure of the upstream.
type UpstreamError uint8

const (
	// UpstreamRefused means that no connection could be made.
	UpstreamRefused UpstreamError = iota
	// UpstreamReset means that the upstream closed the connection before it answered.
	UpstreamReset
	// UpstreamTimeout means that the upstream did not answer in time.
	UpstreamTimeout
	// UpstreamOther means any other failure, for example an invalid HTTP response.
	UpstreamOther
	upstreamErrorCount
)

var upstreamErrorNames = [upstreamErrorCount]string{"refused", "reset", "timeout", "other"}

// String returns the name in metrics.
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

// CodeClass groups answers by the first digit of their status. A request whose client
// left before the answer has its own class.
type CodeClass uint8

// The classes. ClassCanceled has no status, because the client left.
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

// String returns the name in metrics.
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

// Traffic counts the requests that a front serves. The zero Traffic is ready to use.
type Traffic struct {
	// InFlight is the number of requests in progress. Waiting is the number of these
	// requests that wait for their departure.
	InFlight, Waiting atomic.Int64
	// ClosedForMemory counts the connections that were closed because memory was near its bound.
	ClosedForMemory atomic.Uint64
	// Decision has the durations of decisions.
	Decision Histogram
	// ServiceTime has, for each request that reached the service, the time from forwarding it to the first byte of the answer.
	// RequestTime has, for each request, the time from its header to the end of its answer.
	ServiceTime, RequestTime Durations

	answers  [originCount][classCount]atomic.Uint64
	failures [upstreamErrorCount]atomic.Uint64
	paths    [pathCount]atomic.Uint64
}

// UpstreamFailed counts a failure of the upstream.
func (t *Traffic) UpstreamFailed(e UpstreamError) { t.failures[e].Add(1) }

// UpstreamFailures returns the number of failures of a kind.
func (t *Traffic) UpstreamFailures(e UpstreamError) uint64 { return t.failures[e].Load() }
