package redisclients_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/front/resp"
	"github.com/headgate/headgate/internal/listen"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// clock is set by tests.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() headgate.Instant {
	const epoch = headgate.Instant(1_700_000_000_000_000_000)
	return epoch + headgate.Instant(time.Duration(c.ms.Load())*time.Millisecond)
}

// start serves until the test ends. The rules allow 2 a minute for each ip.
func start(t *testing.T, c *clock) string {
	t.Helper()
	store, err := memory.New(memory.Config{Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	key, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, MaxSentLimits: 100, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "per-ip", Key: []rule.Part{key}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 2, Per: time.Minute}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen.Open(t.Context(), listen.Config{Address: "127.0.0.1:0", WriteTimeout: resp.WriteTimeout})
	if err != nil {
		t.Fatal(err)
	}
	s := resp.New(resp.Config{Guard: g, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		s.Drain(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// onProtocols runs a test with a client for each version of the protocol.
func onProtocols(t *testing.T, test func(*testing.T, *clock, *redis.Client)) {
	t.Helper()
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", version), func(t *testing.T) {
			t.Parallel()
			c := new(clock)
			client := redis.NewClient(&redis.Options{
				Addr: start(t, c), Protocol: version, ClientName: "test", ReadTimeout: time.Minute, WriteTimeout: time.Minute,
			})
			t.Cleanup(func() { _ = client.Close() })
			test(t, c, client)
		})
	}
}

// TestThrottle has the example and the table of redis-cell, and what throttlecrab answers in another way.
func TestThrottle(t *testing.T) {
	t.Parallel()
	onProtocols(t, func(t *testing.T, c *clock, client *redis.Client) {
		t.Helper()
		for i, row := range []struct {
			now     int64
			command string
			want    []int64
		}{
			{0, "CL.THROTTLE user123 15 30 60", []int64{0, 16, 15, -1, 2}},
			{0, "CL.THROTTLE k 4 1 1 6", []int64{1, 5, 5, -1, 0}},
			{0, "CL.THROTTLE k 4 1 1", []int64{0, 5, 4, -1, 1}},
			{0, "CL.THROTTLE k 4 1 1", []int64{0, 5, 3, -1, 2}},
			{0, "CL.THROTTLE k 4 1 1", []int64{0, 5, 2, -1, 3}},
			{0, "CL.THROTTLE k 4 1 1", []int64{0, 5, 1, -1, 4}},
			{0, "CL.THROTTLE k 4 1 1", []int64{0, 5, 0, -1, 5}},
			{0, "CL.THROTTLE k 4 1 1", []int64{1, 5, 0, 1, 5}},
			{3000, "CL.THROTTLE k 4 1 1", []int64{0, 5, 2, -1, 3}},
			{3100, "CL.THROTTLE k 4 1 1", []int64{0, 5, 1, -1, 4}},
			{4000, "CL.THROTTLE k 4 1 1", []int64{0, 5, 1, -1, 4}},
			{8000, "CL.THROTTLE k 4 1 1", []int64{0, 5, 4, -1, 1}},
			{9500, "CL.THROTTLE k 4 1 1", []int64{0, 5, 4, -1, 1}},
			{9500, "CL.THROTTLE k 4 1 1 0", []int64{0, 5, 4, -1, 1}},
			{9500, "CL.THROTTLE k 4 1 1 2", []int64{0, 5, 2, -1, 3}},
			{9500, "CL.THROTTLE k 4 1 1 5", []int64{1, 5, 2, 3, 3}},
			// THROTTLE: the limit is max_burst, 1 means allowed, the last two are swapped, and seconds are rounded down.
			{10_000, "THROTTLE crab 2 1 1", []int64{1, 2, 1, 1, 0}},
			{10_000, "THROTTLE crab 2 1 1", []int64{1, 2, 0, 2, 0}},
			{10_500, "THROTTLE crab 2 1 1", []int64{0, 2, 0, 1, 0}},
			{10_500, "THROTTLE crab 2 1 1 3", []int64{0, 2, 0, 1, -1}},
			// After an idle time just short of the key's expiry, no more than the limit passes at once.
			{20_000, "THROTTLE idle 10 1 1", []int64{1, 10, 9, 1, 0}},
			{29_999, "THROTTLE idle 10 1 1 10", []int64{1, 10, 0, 10, 0}},
			{29_999, "THROTTLE idle 10 1 1", []int64{0, 10, 0, 10, 1}},
		} {
			c.ms.Store(row.now)
			got, err := do(t, client, row.command).Int64Slice()
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("row %d, %s: got %v (%v), want %v", i, row.command, got, err, row.want)
			}
		}
	})
}

// do sends a command that is written as words.
func do(t *testing.T, client *redis.Client, command string) *redis.Cmd {
	t.Helper()
	var words []any
	for word := range strings.FieldsSeq(command) {
		words = append(words, word)
	}
	return client.Do(t.Context(), words...)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	onProtocols(t, func(t *testing.T, _ *clock, client *redis.Client) {
		t.Helper()
		for command, want := range map[string]string{
			"CL.THROTTLE k 4 1 1 -1": "ERR quantity is invalid",
			"THROTTLE k 0 1 1":       "ERR max_burst is invalid",
			"CL.THROTTLE k 4 0 1":    "ERR count is invalid",
			"GET a":                  "ERR unknown command 'GET'",
		} {
			if got, err := do(t, client, command).Result(); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: got %v, %v, want %s", command, got, err, want)
			}
		}
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
}

// TestPipeline: 10,000 commands of one pipeline are answered in their order.
func TestPipeline(t *testing.T) {
	t.Parallel()
	onProtocols(t, func(t *testing.T, _ *clock, client *redis.Client) {
		t.Helper()
		const n, admitted = 10_000, 6000
		all, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for range n {
				p.Do(t.Context(), "CL.THROTTLE", "k", admitted-1, 1, 60)
			}
			return nil
		})
		if err != nil || len(all) != n {
			t.Fatalf("%d answers, %v", len(all), err)
		}
		for i, command := range all {
			got, err := command.(*redis.Cmd).Int64Slice()
			if err != nil || (got[0] == 1) != (i >= admitted) || got[2] != int64(max(admitted-1-i, 0)) || (got[3] > 0) != (i >= admitted) {
				t.Fatalf("answer %d is %v, %v", i, got, err)
			}
		}
	})
}

// TestDecide reads the answer of HG.DECIDE as a map, and as a list in RESP2.
func TestDecide(t *testing.T) {
	t.Parallel()
	onProtocols(t, func(t *testing.T, _ *clock, client *redis.Client) {
		t.Helper()
		for i, want := range []string{"allow", "allow", "deny"} {
			got, err := do(t, client, "HG.DECIDE ip=192.0.2.1").Result()
			var verdict any
			switch fields := got.(type) {
			case map[any]any:
				verdict = fields["verdict"]
			case []any:
				verdict = fields[1]
			}
			if err != nil || verdict != want {
				t.Errorf("request %d: got %v, %v, want %s", i, got, err, want)
			}
		}
	})
}
