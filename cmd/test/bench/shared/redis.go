package shared

import (
	"context"
	"errors"
	"sync"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// oneRedis starts one server.
func oneRedis(ctx context.Context, p *place) ([]*servers.Server, error) {
	s, err := servers.Redis(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	return []*servers.Server{s}, nil
}

// threeMasters starts n clusters of three masters. The clusters start concurrently, because
// the nodes of each cluster need seconds to find each other.
func threeMasters(ctx context.Context, p *place, n int) ([][]*servers.Server, error) {
	clusters, errs := make([][]*servers.Server, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { clusters[i], errs[i] = servers.Cluster(ctx, p.dir, 3) })
	}
	all.Wait()
	for _, nodes := range clusters {
		p.started = append(p.started, nodes...)
	}
	return clusters, errors.Join(errs...)
}

// redisKeys compares store/redis and its peers on many keys.
func redisKeys(ctx context.Context, p *place, e contest.Effort) ([]contest.Result, error) {
	var entrants []*entrant
	for _, m := range append([]maker{headgateRedis(), nothing()}, redisPeers()...) {
		one, err := p.enter(ctx, m, oneRedis, perKey())
		if err != nil {
			return nil, err
		}
		entrants = append(entrants, one)
	}
	return each(ctx, "redis", callersOf(), e, entrants, redisQuestions)
}

// redisQuestions lists the questions with bars first, because a repeated question is
// dropped. One caller has no bar here: a lone decision is one call for every side, and
// redis lone has its own bar.
func redisQuestions(callers int) []contest.Question {
	var all []contest.Question
	add := func(against, meter string, bar float64) {
		all = append(all, contest.Question{Of: storeName, Against: against, Meter: meter, Bar: bar})
	}
	switch callers {
	case 1:
		add(contest.FastestExact, "", 0)
		add(contest.FastestExact, serverCPU, 0)
	case 64:
		add(contest.FastestExact, "", barCommit)
		add(contest.FastestExact, serverCPU, barServerCPU)
	default:
		add(redisRateName, "", barManyRate)
		add(contest.FastestExact, "", 0)
		add(contest.FastestExact, serverCPU, barServerCPU)
	}
	add(contest.FastestExact, clientCPU, 0)
	for _, m := range redisPeers() {
		add(m.Name, "", 0)
	}
	return all
}

// Numbers of hash slots for the keys of a cluster. allSlots is every slot. With fewSlots,
// decisions of several keys share a call.
const (
	allSlots = 16_384
	fewSlots = 256
)

// redisCluster compares store/redis with all slots, with few slots, and with one script
// call per decision by the same client.
func redisCluster(ctx context.Context, p *place, e contest.Effort) ([]contest.Result, error) {
	sides := []int{allSlots, fewSlots}
	clusters, err := threeMasters(ctx, p, len(sides)+1)
	if err != nil {
		return nil, err
	}
	var entrants []*entrant
	for i, slots := range sides {
		started := func(context.Context, *place) ([]*servers.Server, error) { return clusters[i], nil }
		one, err := p.enter(ctx, headgateCluster(slots), started, perKey())
		if err != nil {
			return nil, err
		}
		entrants = append(entrants, one)
	}
	started := func(context.Context, *place) ([]*servers.Server, error) { return clusters[len(sides)], nil }
	single, err := p.enter(ctx, scriptAKey(), started, perKey())
	if err != nil {
		return nil, err
	}
	entrants = append(entrants, single)
	return each(ctx, "redis cluster", clusterCallersOf(), e, entrants, func(callers int) []contest.Question {
		few, all := clusterName(fewSlots), clusterName(allSlots)
		bar := 0.0
		if callers == manyCallers {
			bar = barCluster
		}
		return []contest.Question{
			{Of: all, Against: scriptAKeyName, Bar: bar},
			{Of: all, Against: scriptAKeyName, Meter: serverCPU, Bar: bar},
			{Of: all, Against: scriptAKeyName, Meter: clientCPU},
			{Of: few, Against: all},
			{Of: few, Against: all, Meter: serverCPU},
			{Of: few, Against: all, Meter: clientCPU},
		}
	})
}
