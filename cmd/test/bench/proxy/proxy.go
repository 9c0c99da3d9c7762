// Package proxy compares the processor time per request of Headgate's proxy with that of
// nginx, HAProxy and a bare httputil.ReverseProxy, and the latency of Headgate's proxy with a
// throttle and without. The proxies of a scene have the same upstream and the same load, in
// interleaved rounds.
package proxy

import (
	"context"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// Effort is the amount of measurement.
type Effort struct {
	Rounds int `json:"rounds"`
	// Warmups is the number of rounds before the measured rounds.
	Warmups int `json:"warmups"`
	// Load is the time for which a side is loaded in a round.
	Load time.Duration `json:"load_ns"`
}

// Result holds the processor time per request in nanoseconds, and the figures of the load
// generator.
type Result struct {
	contest.Result

	Seen []Seen `json:"seen"`
}

// Seen holds the medians of the figures that the load generator reported for one side.
type Seen struct {
	Name string        `json:"name"`
	Rate float64       `json:"requests_per_second"`
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
	// Resident is the resident memory of all processes after the last round, in bytes.
	Resident uint64 `json:"resident"`
}

// Scene is a load, with the proxies that it compares.
type Scene struct {
	Name string
	// Repeats means that another scene runs the same code of this package. A quick run leaves it out.
	Repeats bool

	about     string
	load      load
	sides     []side
	questions []contest.Question
}

// Measure starts the sides on loopback, loads one after the other, and ends them.
func (s *Scene) Measure(ctx context.Context, p *Programs, e Effort) (r Result, err error) {
	err = p.withSides(ctx, s.load, s.sides, func(sides []*process) error {
		r, err = s.rounds(ctx, e, sides)
		return err
	})
	return r, err
}
