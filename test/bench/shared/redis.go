package shared

import (
	"context"
	"errors"
	"sync"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/servers"
)

// oneRedis starts one server.
func oneRedis(ctx context.Context, p *place) ([]*servers.Server, error) {
	s, err := servers.Redis(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	return []*servers.Server{s}, nil
}

// threeMasters starts so many clusters, at the same time: their nodes wait for each
// other for seconds.
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

// redisKeys compares ours and the peers on many keys.
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

// redisQuestions gives the bars first: a ratio is formed once. One decision at a time is
// one call, for us as for the peers, and has a bar of its own in redis lone.
func redisQuestions(callers int) []contest.Question {
	var all []contest.Question
	ask := func(against, meter string, bar float64) {
		all = append(all, contest.Question{Of: storeName, Against: against, Meter: meter, Bar: bar})
	}
	switch callers {
	case 1:
		ask(contest.FastestExact, "", 0)
		ask(contest.FastestExact, serverCPU, 0)
	case 64:
		ask(contest.FastestExact, "", barCommit)
		ask(contest.FastestExact, serverCPU, barServerCPU)
	default:
		ask(redisRateName, "", barManyRate)
		ask(contest.FastestExact, "", 0)
		ask(contest.FastestExact, serverCPU, barServerCPU)
	}
	ask(contest.FastestExact, clientCPU, 0)
	for _, m := range redisPeers() {
		ask(m.Name, "", 0)
	}
	return all
}

// Slots that a cluster's keys lie in: all that there are, and few enough that
// decisions of several keys share a call.
const (
	allSlots = 16_384
	fewSlots = 256
)

// redisCluster compares ours with itself, with more and fewer slots, and with one call of its
// script for each decision, by the same client.
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
