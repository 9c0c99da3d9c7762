// Package shared compares what decides in stores that several instances share,
// Redis, Redis Cluster and Memcached: how many decisions a second, how long a lone one
// takes, and what they cost this process and the servers.
//
// Each side has a server of its own, of the same program and settings: nobody pays
// for the expiry of another's keys, and the processor time of a server is one side's.
package shared

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
	"github.com/headgate/headgate/test/bench/servers"
)

// The bars: the greatest ratio that is good enough. README.md says where they stand.
const (
	barCommit    = 0.5  // Time of a decision against the fastest peer, 64 callers.
	barManyRate  = 0.25 // The same against redis_rate, 512 callers.
	barServerCPU = 0.5  // Processor time of Redis against the fastest peer, 64 callers and more.
	barLone      = 1.1  // Median of a lone decision against its script alone.
	barHot       = 1.25 // Time of a prefetched decision on hot keys against memory: 0.8 times the throughput.
	barAhead     = 1    // Time of a decision with prefetch on keys that are cold against one without.
	barCluster   = 0.7  // Time and processor time of Redis against one EVALSHA a key, many callers on a cluster.
)

// Names of the meters.
const (
	clientCPU = "client CPU"
	serverCPU = "server CPU"
)

// keyCount is how many keys the scenes of many keys have.
const keyCount = 10_000

// perKey is what every key may take in them: more than any side gets to ask for.
func perKey() limiters.Limit { return limiters.Limit{Count: 100, Per: time.Second, Burst: 100} }

// Scene measures one thing. It holds nothing until it is measured.
type Scene struct {
	Name string
	// Contests are the names of what is measured, in the order of the results.
	Contests []string
	measure  func(context.Context, *place, contest.Effort) ([]contest.Result, error)
}

// All lists the scenes in the order of the report.
func All() []Scene {
	return []Scene{
		{"redis", namesOf("redis", callersOf), redisKeys},
		{"redis lone", []string{"redis lone"}, redisLone},
		{"redis prefetch", []string{"redis prefetch, hot keys", "redis prefetch, 10000 keys"}, redisPrefetch},
		{"redis cluster", namesOf("redis cluster", clusterCallersOf), redisCluster},
		{"redis ceiling", []string{"redis ceiling"}, redisCeiling},
		{"memcached", namesOf("memcached", callersOf), memcachedKeys},
	}
}

// longest bounds a scene, far ahead. A request of a server has an end, so every call
// here has: rueidis does not wait in its caller's goroutine, from then on, once it was
// called with a context that can be cancelled and has no deadline.
const longest = time.Hour

// Measure starts the servers, measures, and stops them.
func (s Scene) Measure(ctx context.Context, e contest.Effort) ([]contest.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // Whatever stays behind is in the system's temporary folder.
	p := &place{dir: dir}
	defer p.stop()
	results, err := s.measure(ctx, p, e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return results, nil
}

// place has what a scene has started.
type place struct {
	dir     string
	started []*servers.Server
	opened  []limiter
}

// stop closes the limiters and ends their servers.
func (p *place) stop() {
	for _, l := range p.opened {
		l.Close()
	}
	for _, s := range p.started {
		s.Stop()
	}
}

// How many ask at once, and wait for their answers.
func callersOf() []int        { return []int{1, 64, 512} }
func clusterCallersOf() []int { return []int{64, manyCallers} }

// manyCallers keep every master of a cluster at work.
const manyCallers = 512

func namesOf(scene string, callers func() []int) []string {
	var names []string
	for _, n := range callers() {
		names = append(names, nameOf(scene, n))
	}
	return names
}

func nameOf(scene string, callers int) string {
	if callers == 1 {
		return scene + ", 1 caller"
	}
	return fmt.Sprintf("%s, %d callers", scene, callers)
}
