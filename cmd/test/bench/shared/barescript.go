package shared

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/internal/store/script"
)

// The client settings of store/redis. The bare script uses the same settings.
const (
	storeBuffer  = 64 << 10
	storeSilence = time.Second
	// storeSlack is the time for which a key is kept after its state has expired.
	storeSlack = time.Second
)

// bareCall holds the arguments of one script call, prepared before the measurement.
type bareCall struct{ keys, args []string }

// newBareScript runs the script of store/redis with prepared arguments, and does not parse
// the replies.
func newBareScript(ctx context.Context, addrs []string, l limiters.Limit) (limiter, error) {
	return newScript(ctx, rueidis.ClientOption{InitAddress: addrs, ForceSingleClient: true}, l)
}

const scriptAKeyName = "one EVALSHA a key, by the same client"

// scriptAKey measures a cluster without group commit. It calls the script of store/redis
// for each decision, with the same client and settings.
func scriptAKey() maker {
	connect := func(ctx context.Context, addrs []string, l limiters.Limit) (limiter, error) {
		return newScript(ctx, rueidis.ClientOption{InitAddress: addrs, PipelineMultiplex: -1}, l)
	}
	return maker{Name: scriptAKeyName, Kind: contest.Floor, New: connect}
}

func newScript(ctx context.Context, o rueidis.ClientOption, l limiters.Limit) (limiter, error) {
	calls, err := bareCalls(l)
	if err != nil {
		return nil, err
	}
	o.DisableCache, o.DisableRetry = true, true
	o.ReadBufferEachConn, o.WriteBufferEachConn, o.ConnWriteTimeout = storeBuffer, storeBuffer, storeSilence
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, err
	}
	decide := script.Decide()
	for _, node := range client.Nodes() {
		if err := node.Do(ctx, node.B().ScriptLoad().Script(decide.Text).Build()).Error(); err != nil {
			client.Close()
			return nil, fmt.Errorf("load the script: %w", err)
		}
	}
	return &rueidisLimiter{client, func(ctx context.Context, key string) (bool, error) {
		c := calls[key]
		command := client.B().Evalsha().Sha1(decide.SHA).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
		err := client.Do(ctx, command).Error()
		return err == nil, err
	}}, nil
}

// bareCalls prepares the script arguments for each key, as the store does.
func bareCalls(l limiters.Limit) (map[string]bareCall, error) {
	names, err := script.NewNames(0)
	if err != nil {
		return nil, err
	}
	plan, err := script.Compile(bucket(l))
	if err != nil {
		return nil, err
	}
	calls := make(map[string]bareCall, keyCount)
	batch := new(script.Batch)
	for _, key := range keysOf(keyCount) {
		batch.Reset(names)
		ops := []headgate.Op{{Cost: 1}}
		if err := batch.Add(ops, []*script.Plan{plan}, []script.Place{script.PlaceOf(key, 0)}, 0); err != nil {
			return nil, err
		}
		calls[key] = bareCall{batch.Keys(), batch.Args(0, storeSlack)}
	}
	return calls, nil
}
