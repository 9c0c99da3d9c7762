//go:build soak

package redis_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/prefetch"
)

// TestSoakResharding moves slots that are being counted ten times there and back. None of
// thousands of decisions is wrong, and hardly one fails.
func TestSoakResharding(t *testing.T) {
	moveUnderLoad(t, 400, 10, 2*time.Millisecond, 200*time.Millisecond, 1000)
}

// TestSoakLongDistance: three data centres that are 100 ms from their server learn within some
// seconds how much to take ahead. From then on 99 of 100 decisions are made where they are
// asked for, and no window holds more than the limit.
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
	}{{"learning", 8 * time.Second, 0}, {"learned", 6 * time.Second, 0.99}} {
		var b busy
		for _, store := range stores {
			b.start(t, store, p, 4)
		}
		b.until(t, round.during)
		local, most := b.local(oneWay), b.most(per)
		if local < round.least || most > count {
			t.Errorf("%s: %.4f of the decisions were local, and %d units in one window of %d", round.name, local, most, count)
		}
		t.Logf("%s: %d decisions, %d admitted, %d failed; %.4f of them local; p50 %v, p99 %v, p99.9 %v; at most %d in one window of %d", round.name,
			len(b.took), len(b.at), b.fails, local, part(b.took, 0.5), part(b.took, 0.99), part(b.took, 0.999), most, count)
	}
}
