package overload

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim"
)

// event is something that happens at a time.
type event struct {
	at      headgate.Instant
	number  int // events of one time happen in the order of their numbers
	kind    kind
	version int // of the service, for cpuEnds
	attempt *Attempt
}

type kind uint8

const (
	arrives     kind = iota // the next logical request of the traffic
	starts                  // an attempt of a client
	arrived                 // the body of an attempt
	cpuEnds                 // the CPU part of a job
	poolEnds                // the pool part of a job
	answers                 // the end of a job
	gives                   // the client gives up
	speedChange             // the capacity of the service
	wakes                   // the design's timer of a waiting attempt
)

// earlier is the order of events.
func earlier(a, b event) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

// events are the events to come.
type events struct {
	sim.Queue[event]

	number int
}

// plan adds an event.
func (e *events) plan(ev event) {
	e.number++
	ev.number = e.number
	e.Push(ev)
}
