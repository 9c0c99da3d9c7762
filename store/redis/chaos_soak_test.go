//go:build soak

package redis_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestSoakResharding moves busy slots to another master and back, ten times. All of the
// thousands of decisions are right, and very few calls fail.
func TestSoakResharding(t *testing.T) {
	moveUnderLoad(t, 400, 10, 2*time.Millisecond, 200*time.Millisecond, 1000)
}

// TestSoakLongDistance: three data centres have a round trip of 100 ms to their server. Within
// some seconds, prefetch takes enough units ahead. From then on, 99 of 100 decisions are local,
// and no window has more units than the limit.
func TestSoakLongDistance(t *testing.T) {
	const count, per, oneWay = 12_000, time.Second, 50 * time.Millisecond
	server := testserver.Start(t)
	p := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: per}, Hold: 500 * time.Millisecond}
	var stores []*prefetch.Store
	for range 3 {
		way := network.New(t, server.Addr)
		way.Latency(oneWay, oneWay, 0)
		stores = append(stores, ahead(t, way.Addr, nil))
	}
	for _, round := range []struct {
		name   string
		during time.Duration
		least  float64
	}{{"first 8 seconds", 8 * time.Second, 0}, {"next 6 seconds", 6 * time.Second, 0.99}} {
		var b busy
		for _, store := range stores {
			b.start(t, store, p, 4)
		}
		b.until(t, round.during)
		local, most := b.local(oneWay), b.most(per)
		if local < round.least || most > count {
			t.Errorf("%s: %.4f of the decisions were local, want %.2f; %d units in one window, want at most %d", round.name, local, round.least, most, count)
		}
		t.Logf("%s: %d decisions, %d units admitted, %d failures, %.4f local; p50 %v, p99 %v, p99.9 %v; at most %d units in one window with a limit of %d", round.name,
			len(b.durations), len(b.at), b.fails, local, quantile(b.durations, 0.5), quantile(b.durations, 0.99), quantile(b.durations, 0.999), most, count)
	}
}
