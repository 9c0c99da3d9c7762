package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// Request is one request in a Throttler. Set the first four fields, then call Arrive. The
// Throttler uses the Request until Leave, or until Arrive or Next has reported its refusal.
// After that it may be reused. A Request must not be copied meanwhile.
type Request struct {
	Class Class
	// Tenant is the client that fairness is about. The Throttler may keep this text.
	Tenant string
	// Route is the shape of the request's path, whose requests need similar work. The
	// Throttler may keep this text.
	Route string
	// Deadline is the time until which the caller waits for the answer.
	Deadline headgate.Instant

	// Owner belongs to the caller, who gets the Request back from Next.
	Owner any

	// Refusal is the reason of a refusal: ThrottleFull, ThrottleEvicted or ThrottleDeadline.
	Refusal headgate.Reason
	// RetryAfter is, after a refusal, the time that the queued work takes to drain.
	RetryAfter time.Duration

	state      state
	bucket     uint8
	charged    bool // dispatched from its bucket, whose order counts its work
	arrived    headgate.Instant
	dispatched headgate.Instant
	need       prediction
	level      *mean   // the level that predicted need, or nil
	probe      bool    // admitted against its prediction
	begun      bool    // its answer has begun, or it is a stream
	area       float64 // searcher.area when it was admitted
	tenant     *tenant
	route      *entry[string, route]
	pair       *entry[pair, mean] // nil before its first sample
	before     *Request           // the neighbours in the queue of the tenant, in hang, or in the list of refused requests
	after      *Request
}

// state is where a request is.
type state uint8

const (
	outside state = iota // before Arrive, and after the end
	queued
	admitted
	refused // in the list that Next reports
)

// Work returns the predicted work of the request.
func (r *Request) Work() time.Duration { return r.need.work }

// Taken returns the time that the request has been at the service; 0 while it waits.
func (r *Request) Taken(now headgate.Instant) time.Duration {
	if r.state != admitted {
		return 0
	}
	return max(now.Sub(r.dispatched), 0)
}

// Ended says how an admitted request ended.
type Ended struct {
	// Work is the work that the service reported. 0 means no report: the service time counts.
	Work time.Duration
	// Lesson is what the predictor learns.
	Lesson Lesson
	// Answered says that the service has answered, although the answer teaches nothing, like a 429.
	Answered bool
}

// Lesson is what the predictor learns from a request.
type Lesson uint8

const (
	// LearnAll is for answers: work and service time.
	LearnAll Lesson = iota
	// LearnMiss is for requests that failed or were cancelled. They teach no work, and their time
	// only when less than a quarter of the similar requests are answered.
	LearnMiss
	// LearnNothing is for streams.
	LearnNothing
)
