// Package rls measures headgate server as Envoy's rate limit service, beside an empty call of grpc-go and
// beside envoyproxy/ratelimit. The servers are processes of their own. The meter is the processor time of
// the server, with that of its Redis server.
package rls

import (
	"context"
	"fmt"
	"os"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// The bars. A bar is the largest value that passes. README.md lists them.
const (
	barFewCallers  = 1.35    // Processor time of a call / that of an empty call, 64 callers.
	barManyCallers = 1.45    // The same with 512 callers.
	barDescriptor  = 1500    // Processor time of a descriptor in a message of 100, in nanoseconds.
	barReference   = 1.0 / 3 // Processor time of a call in memory / the reference and its Redis server.
	barLate        = 100     // Late calls of a million beyond those of empty calls: 1 in 10,000.
)

// serverCPU is the meter of processor time.
const serverCPU = "server CPU"

// Names of the sides.
const (
	sideOurs      = "headgate server"
	sideOursRedis = "headgate server, Redis"
	sideEmpty     = "empty call"
	sideReference = "envoyproxy/ratelimit, Redis"
	sideZero      = "nothing"
)

// Scene is one measurement. It starts its programs only in Measure.
type Scene struct {
	Name    string
	measure func(context.Context, *place, contest.Effort) (contest.Result, error)
	// reference means that the scene needs envoyproxy/ratelimit.
	reference bool
}

// All returns the scenes in the order of the report.
func All() []Scene {
	return []Scene{
		{"server, 64 callers", calls("server, 64 callers", 64, barFewCallers), false},
		{"server, 512 callers", calls("server, 512 callers", 512, barManyCallers), false},
		{"server, 100 descriptors", messages, false},
		{"server, reference", reference, true},
		{"server, late calls", late, false},
		{"server, stream", streams, false},
		{"server, 100 requests", requests, false},
		{"server, HTTP", web, false},
		{"server, token", tokens, false},
		{"server, flood", floods, false},
		{"client, 64 callers", clients("client, 64 callers", 64, barClientTime64, barClientCPU64), false},
		{"client, 512 callers", clients("client, 512 callers", 512, barClientTime512, barClientCPU512), false},
		{"client, constant rate", paced, false},
		{"redis protocol, one command", throttles("redis protocol, one command", 1, barThrottle1), false},
		{"redis protocol, pipelines of 32", throttles("redis protocol, pipelines of 32", 32, barThrottle32), false},
	}
}

// Measure starts programs, measures, and stops them.
func (s Scene) Measure(ctx context.Context, programs *Programs, e contest.Effort) (contest.Result, error) {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return contest.Result{}, err
	}
	p := &place{programs: programs, dir: dir}
	defer p.close()
	r, err := s.measure(ctx, p, e)
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.Name, err)
	}
	return r, nil
}

// side makes a side of a server.
func (p *place) side(name string, kind contest.Kind, s *servers.Server, of ...*servers.Server) (contest.Side, error) {
	c, err := p.dial(s.Addr)
	if err != nil {
		return contest.Side{}, err
	}
	return contest.Side{Name: name, Kind: kind, Run: c.run, Meters: meter(append(of, s)...)}, nil
}

// calls compares unary calls of one descriptor with empty calls.
func calls(name string, callers int, bar float64) func(context.Context, *place, contest.Effort) (contest.Result, error) {
	return func(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
		ours, empty, err := p.both(ctx)
		if err != nil {
			return contest.Result{}, err
		}
		c := contest.Contest{
			Name: name, Workers: callers, Least: contest.Batch, Sides: []contest.Side{ours, empty},
			About: fmt.Sprintf("processor time of the server for a unary call with one descriptor; memory store, metrics on, "+
				"%d connections", connections),
			Questions: []contest.Question{
				{Of: sideOurs, Against: sideEmpty, Meter: serverCPU, Bar: bar},
				{Of: sideOurs, Against: sideEmpty},
			},
		}
		return c.Measure(ctx, e)
	}
}

// both starts headgate server with a store in memory, and the empty server.
func (p *place) both(ctx context.Context) (ours, empty contest.Side, err error) {
	s, err := p.ours(ctx, "memory")
	if err != nil {
		return ours, empty, err
	}
	if ours, err = p.side(sideOurs, contest.Ours, s); err != nil {
		return ours, empty, err
	}
	if s, err = p.empty(ctx); err != nil {
		return ours, empty, err
	}
	empty, err = p.side(sideEmpty, contest.Floor, s)
	return ours, empty, err
}

// messages measures the processor time of a descriptor in a message of 100.
func messages(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	s, err := p.ours(ctx, "memory")
	if err != nil {
		return contest.Result{}, err
	}
	callers, err := p.dial(s.Addr)
	if err != nil {
		return contest.Result{}, err
	}
	c := contest.Contest{
		Name: "server, 100 descriptors", Workers: 64, Least: 100 * contest.Batch,
		About: "processor time of the server for a descriptor, 100 in a message; memory store, metrics on, 64 callers",
		Sides: []contest.Side{
			{Name: sideOurs, Kind: contest.Ours, Run: callers.runMessages, Meters: meter(s)},
			nothing(),
		},
		Questions: []contest.Question{{Of: sideOurs, Against: sideZero, Meter: serverCPU, Difference: true, Bar: barDescriptor}},
	}
	return c.Measure(ctx, e)
}

// reference compares unary calls with envoyproxy/ratelimit and its Redis server.
func reference(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	memory, err := p.ours(ctx, "memory")
	if err != nil {
		return contest.Result{}, err
	}
	ours, err := p.side(sideOurs, contest.Ours, memory)
	if err != nil {
		return contest.Result{}, err
	}
	shared, err := p.onRedis(ctx, sideOursRedis, contest.Ours, func(redis string) (*servers.Server, error) {
		return p.ours(ctx, "redis://"+redis)
	})
	if err != nil {
		return contest.Result{}, err
	}
	peer, err := p.onRedis(ctx, sideReference, contest.Peer, func(redis string) (*servers.Server, error) {
		return p.reference(ctx, redis)
	})
	if err != nil {
		return contest.Result{}, err
	}
	c := contest.Contest{
		Name: "server, reference", Workers: 64, Least: contest.Batch, Sides: []contest.Side{ours, shared, peer},
		About: "processor time of the server and its Redis server for a unary call with one descriptor; 64 callers, metrics on",
		Questions: []contest.Question{
			{Of: sideOurs, Against: sideReference, Meter: serverCPU, Bar: barReference},
			{Of: sideOursRedis, Against: sideReference, Meter: serverCPU},
			{Of: sideOursRedis, Against: sideReference},
		},
	}
	return c.Measure(ctx, e)
}

// onRedis is a side with a Redis server of its own.
func (p *place) onRedis(
	ctx context.Context, name string, kind contest.Kind, start func(redis string) (*servers.Server, error),
) (contest.Side, error) {
	redis, err := p.redis(ctx)
	if err != nil {
		return contest.Side{}, err
	}
	s, err := start(redis.Addr)
	if err != nil {
		return contest.Side{}, err
	}
	return p.side(name, kind, s, redis)
}
