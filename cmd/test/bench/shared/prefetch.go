package shared

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/cmd/test/bench/servers"
	"github.com/headgate/headgate/store/memory"
)

// The hot keys are few, and every processor uses them.
const (
	hotKeys    = 16
	memoryName = "store/memory Take"
	hotName    = "store/prefetch Take"
)

// hotLimit returns a limit that no machine reaches during a measurement.
func hotLimit() limiters.Limit { return limiters.Limit{Count: 1e8, Per: time.Second, Burst: 1e8} }

// redisPrefetch compares prefetched units with store/memory on hot keys, and with
// store/redis on many keys.
func redisPrefetch(ctx context.Context, p *place, e contest.Effort) ([]contest.Result, error) {
	hot, err := redisHot(ctx, p, e)
	if err != nil {
		return nil, err
	}
	many, err := redisAhead(ctx, p, e)
	if err != nil {
		return nil, err
	}
	return []contest.Result{hot, many}, nil
}

// redisHot compares internal/store/prefetch and store/memory by Take, their fastest method.
func redisHot(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	own, err := oneRedis(ctx, p)
	if err != nil {
		return contest.Result{}, err
	}
	p.started = append(p.started, own...)
	local, err := hotMemory()
	if err != nil {
		return contest.Result{}, err
	}
	ahead, end, err := hotAhead(ctx, own[0].Addr)
	if err != nil {
		return contest.Result{}, err
	}
	defer end()
	c := contest.Contest{
		Name: "redis prefetch, hot keys", Workers: runtime.GOMAXPROCS(0), Want: contest.Allow,
		About: fmt.Sprintf("decisions on %d hot keys on all processors; units are held for at most %v", hotKeys, maxHold) + roundsOf(e),
		Sides: []contest.Side{
			{Name: memoryName, Kind: contest.Ours, Run: local},
			{
				Name: hotName, Kind: contest.Ours, Run: ahead,
				Meters: []contest.Meter{{Name: serverCPU, Read: servers.CPUOf(own)}},
			},
		},
		Questions: []contest.Question{{Of: hotName, Against: memoryName, Bar: barHot}},
	}
	return c.Measure(ctx, e)
}

// run is the type of contest.Side.Run.
type run = func(worker, n int) contest.Tally

func hotMemory() (run, error) {
	store, err := memory.New(memory.Config{})
	if err != nil {
		return nil, err
	}
	id, err := store.Prepare(bucket(hotLimit()))
	if err != nil {
		return nil, err
	}
	return hotRun(id, store.Take), nil
}

func hotAhead(ctx context.Context, addr string) (run, func(), error) {
	store, end, err := openPrefetch([]string{addr})
	if err != nil {
		return nil, nil, err
	}
	policy := bucket(hotLimit())
	policy.Hold = maxHold
	id, err := store.Prepare(policy)
	if err != nil {
		end()
		return nil, nil, err
	}
	return hotRun(id, func(op *headgate.Op, d *headgate.Decision) error { return store.Take(ctx, op, d) }), end, nil
}

// hotRun takes units from the hot keys in turn.
func hotRun(id headgate.PolicyID, take func(*headgate.Op, *headgate.Decision) error) run {
	keys := keysOf(hotKeys)
	return func(worker, n int) (t contest.Tally) {
		op, d := headgate.Op{Policy: id, Cost: 1}, headgate.Decision{}
		for i := range n {
			op.Key = keys[(worker*hotKeys/2+i)%hotKeys]
			switch err := take(&op, &d); {
			case err != nil:
				t = t.Add(contest.Failure(err))
			case d.Verdict == headgate.Allow:
				t.Allowed++
			default:
				t.Denied++
			}
		}
		return t
	}
}

// redisAhead compares internal/store/prefetch with store/redis on many keys. The limit is above the
// demand of all callers.
func redisAhead(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	const callers = 64
	limit := limiters.Limit{Count: 100_000, Per: time.Second, Burst: 100_000}
	var entrants []*entrant
	for _, m := range []maker{headgateRedis(), headgatePrefetch()} {
		one, err := p.enter(ctx, m, oneRedis, limit)
		if err != nil {
			return contest.Result{}, err
		}
		entrants = append(entrants, one)
	}
	c := manyKeys(ctx, "redis prefetch, 10000 keys", callers, entrants)
	c.About = fmt.Sprintf("decisions on %d keys with %d/s each, %d callers; units are held for at most %v",
		keyCount, limit.Count, callers, maxHold) + roundsOf(e)
	for _, meter := range []string{"", serverCPU, clientCPU} {
		bar := 0.0
		if meter == "" {
			bar = barAhead
		}
		c.Questions = append(c.Questions, contest.Question{Of: prefetchName, Against: storeName, Meter: meter, Bar: bar})
	}
	return c.Measure(ctx, e)
}
