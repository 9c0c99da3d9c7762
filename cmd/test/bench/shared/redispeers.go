package shared

import (
	"context"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// redisRateName is the name of the most widely used peer.
const redisRateName = "redis_rate (go-redis)"

// redisPeers returns the peers on Redis. rueidis' own limiter is not available as a module.
// A script that sends the same commands with the same client represents it.
func redisPeers() []maker {
	return []maker{
		{Name: redisRateName, Kind: contest.Peer, New: newRedisRate},
		// The compare-and-swap of throttled fails with an error after ten attempts.
		{Name: "throttled goredisstore (go-redis)", Kind: contest.Peer, MayFail: true, New: newThrottled},
		{Name: "ulule/limiter redis (go-redis)", Kind: contest.Peer, New: newUlule},
		{Name: "stand-in for rueidis' limiter", Kind: contest.Peer, New: newRueidisStandIn},
	}
}

// newGoRedis returns a client with default settings: ten connections per processor.
func newGoRedis(addr string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: addr})
}

// goRedisLimiter is a peer that uses the client go-redis.
type goRedisLimiter struct {
	client *goredis.Client
	take   take
}

// Caller returns the same function for all callers. These limiters keep no state per caller.
func (g *goRedisLimiter) Caller() take { return g.take }

// Close closes the connections.
func (g *goRedisLimiter) Close() { _ = g.client.Close() }

func newRedisRate(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
	client := newGoRedis(addrs[0])
	limit := redis_rate.Limit{Rate: l.Count, Burst: l.Burst, Period: l.Per}
	rate := redis_rate.NewLimiter(client)
	return &goRedisLimiter{client, func(ctx context.Context, key string) (bool, error) {
		d, err := rate.Allow(ctx, key, limit)
		return err == nil && d.Allowed == 1, err
	}}, nil
}

func newThrottled(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
	client := newGoRedis(addrs[0])
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(l.Count, l.Per), MaxBurst: l.Burst - 1}
	rate, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	return &goRedisLimiter{client, func(ctx context.Context, key string) (bool, error) {
		limited, _, err := rate.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited, err
	}}, nil
}

// newUlule counts in fixed windows, because ulule has no token bucket.
func newUlule(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
	client := newGoRedis(addrs[0])
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, err
	}
	rate := ulule.New(store, ulule.Rate{Period: l.Per, Limit: int64(l.Count)})
	return &goRedisLimiter{client, func(ctx context.Context, key string) (bool, error) {
		d, err := rate.Get(ctx, key)
		return err == nil && !d.Reached, err
	}}, nil
}

// standInScript counts in a fixed window that begins with the first request. It sends the
// known commands of rueidis' limiter, which stores the end of the window in a second key.
const standInScript = `local counted, closing = KEYS[1], KEYS[2]
local closes = redis.call('GET', closing)
if not closes or tonumber(closes) < tonumber(ARGV[3]) then
  closes = ARGV[2]
  redis.call('SET', counted, '0', 'PXAT', closes)
  redis.call('SET', closing, closes, 'PXAT', closes)
end
return {redis.call('INCRBY', counted, ARGV[1]), tonumber(closes)}`

// rueidisLimiter is a peer that uses the client rueidis.
type rueidisLimiter struct {
	client rueidis.Client
	take   take
}

// Caller returns the same function for all callers.
func (r *rueidisLimiter) Caller() take { return r.take }

// Close closes the connections.
func (r *rueidisLimiter) Close() { r.client.Close() }

func newRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
}

// newRueidisStandIn sends the time of the client, as rueidis' limiter does.
func newRueidisStandIn(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
	client, err := newRueidis(addrs[0])
	if err != nil {
		return nil, err
	}
	script, most := rueidis.NewLuaScript(standInScript), int64(l.Count)
	return &rueidisLimiter{client, func(ctx context.Context, key string) (bool, error) {
		name, now := "limit:{"+key+"}", time.Now()
		got, err := script.Exec(ctx, client, []string{name, name + ":end"}, []string{"1", millis(now.Add(l.Per)), millis(now)}).AsIntSlice()
		return err == nil && got[0] <= most, err
	}}, nil
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// nothingScript returns immediately. A limiter that calls a script for each decision cannot
// be faster.
const nothingScript = "return {1, 2}"

// nothing is the lower limit for one script call per decision.
func nothing() maker {
	return maker{
		Name: "rueidis, a script that returns at once", Kind: contest.Floor,
		New: func(_ context.Context, addrs []string, _ limiters.Limit) (limiter, error) {
			client, err := newRueidis(addrs[0])
			if err != nil {
				return nil, err
			}
			script := rueidis.NewLuaScript(nothingScript)
			return &rueidisLimiter{client, func(ctx context.Context, key string) (bool, error) {
				err := script.Exec(ctx, client, []string{"nothing:" + key}, nil).Error()
				return err == nil, err
			}}, nil
		},
	}
}
