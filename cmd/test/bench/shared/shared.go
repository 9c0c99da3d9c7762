// Package shared compares limiters on stores that several instances share: Redis, Redis
// Cluster and Memcached. It measures the rate of decisions, the latency of a lone decision,
// and the processor time of this process and of the servers.
//
// Each side has its own server, with the same program and settings. Expiring keys of
// another side then cost no time, and the processor time of a server belongs to one side.
package shared

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// The bars. A bar is the largest ratio that passes. README.md lists the bar of each scene.
const (
	barCommit    = 0.5  // Time of a decision / the fastest peer, 64 callers.
	barManyRate  = 0.25 // Time of a decision / redis_rate, 512 callers.
	barServerCPU = 0.5  // Processor time of Redis / the fastest peer, 64 or more callers.
	barLone      = 1.1  // Median of a lone decision / its script alone.
	barHot       = 1.25 // Time of a prefetched decision on hot keys / store/memory; 1/1.25 is 0.8 of the rate.
	barAhead     = 1    // Time of a decision on cold keys with prefetch / without prefetch.
	barCluster   = 0.7  // Time, and processor time of Redis, on a cluster with 512 callers / one EVALSHA per key.
)

// Names of the meters.
const (
	clientCPU = "client CPU"
	serverCPU = "server CPU"
)

// keyCount is the number of keys in the scenes with many keys.
const keyCount = 10_000

// perKey returns the limit of each key in the scenes with many keys. No side reaches it.
func perKey() limiters.Limit { return limiters.Limit{Count: 100, Per: time.Second, Burst: 100} }

// Scene is one measurement. It starts its servers only in Measure.
type Scene struct {
	Name string
	// Contests holds the names of the results, in order.
	Contests []string
	measure  func(context.Context, *place, contest.Effort) ([]contest.Result, error)
}

// All returns the scenes in the order of the report.
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

// longest is a distant deadline for all calls of a scene. Calls of a real server also have
// a deadline. After one call with a cancelable context and no deadline, rueidis stops
// waiting in the goroutine of its caller, permanently.
const longest = time.Hour

// Measure starts the servers, measures, and stops the servers.
func (s Scene) Measure(ctx context.Context, e contest.Effort) ([]contest.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // Files that cannot be removed stay in the system's temporary folder.
	p := &place{dir: dir}
	defer p.stop()
	results, err := s.measure(ctx, p, e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return results, nil
}

// place holds the servers and limiters that a scene has started.
type place struct {
	dir     string
	started []*servers.Server
	opened  []limiter
}

// stop closes the limiters and stops their servers.
func (p *place) stop() {
	for _, l := range p.opened {
		l.Close()
	}
	for _, s := range p.started {
		s.Stop()
	}
}

// Numbers of callers. Each caller waits for its decision before the next call.
func callersOf() []int        { return []int{1, 64, 512} }
func clusterCallersOf() []int { return []int{64, manyCallers} }

// manyCallers is enough callers to keep every master of a cluster busy.
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
