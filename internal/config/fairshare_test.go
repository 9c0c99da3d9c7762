package config

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/internal/testkit/alone"
	"github.com/headgate/headgate/internal/testkit/race"
)

// fairShareOf returns the fair share of a file that has only this section.
func fairShareOf(t *testing.T, fields string) *guard.FairShare {
	t.Helper()
	return parsed(t, "version: 1\nidentity: {jwt: {keys: k}}\nfair_share: {"+fields+"}\n").FairShare
}

// TestFairShare reads the section with only its required fields, and with all fields.
func TestFairShare(t *testing.T) {
	usual := fairshare.Config{
		Capacity: 40, Cycle: time.Second, Reservation: 10, NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	}
	for name, row := range map[string]struct {
		text string
		want guard.FairShare
	}{
		"defaults": {"client: 'header:x-client-id', capacity: 40", guard.FairShare{Config: usual, Client: part(t, "header:X-Client-Id")}},
		"everything": {
			"client: jwt:sub, anonymous: guests, capacity: 1099511627776, cycle: 1h, reservation: 0%, division: max_min, reclaim: next_cycle, " +
				"weights: {a: 1, 'b c': 1000000, 7: 7}, new_clients_per_cycle: 0, forget_after: 1000000, max_clients: 3, " +
				"cost: 'header:x-cost', max_cost: 1099511627776, count_once: 'header:idempotency-key', mode: shadow",
			guard.FairShare{
				Config: fairshare.Config{
					Capacity: share.MaxCapacity, Cycle: time.Hour, Division: share.MaxMin, Reclaim: fairshare.NextCycle,
					Weights: map[string]int64{"a": 1, "b c": 1_000_000, "7": 7}, ForgetAfter: 1_000_000, MaxClients: 3, CountOnce: true,
				},
				Client: part(t, "jwt:sub"), Anonymous: "guests", CostHeader: "X-Cost", MaxCost: share.MaxCapacity,
				IDHeader: "Idempotency-Key", Mode: guard.Shadow,
			},
		},
		"a cost of all there is": {
			"client: ip, capacity: 40, cost: 40, anonymous: reject", guard.FairShare{Config: usual, Client: part(t, "ip"), Cost: 40},
		},
		"off": {
			"client: ip, capacity: 40, mode: off", guard.FairShare{Config: usual, Client: part(t, "ip"), Mode: guard.Off},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fairShareOf(t, row.text); !reflect.DeepEqual(*got, row.want) {
				t.Errorf("got\n%+v\nwant\n%+v", *got, row.want)
			}
		})
	}
	usually, err := guard.NewFairShare(40, "header:X-Client-Id")
	if got := fairShareOf(t, "client: header:X-Client-Id, capacity: 40"); err != nil || !reflect.DeepEqual(got, usually) {
		t.Errorf("package guard has the defaults %+v (error %v), but a file has %+v: want the same", usually, err, got)
	}
	if c := parsed(t, "version: 1\nrules: []\nproxy: {upstream: 'http://a'}\n"); c.FairShare != nil {
		t.Errorf("a file without the section has fair share %+v, want none", c.FairShare)
	}
}

// TestWeightsAreOfClientsAsTheyAreCounted checks that the name of a client in the file is the name
// under which a guard counts that client.
func TestWeightsAreOfClientsAsTheyAreCounted(t *testing.T) {
	for _, row := range []struct{ client, written, want string }{
		{"header:X-Client-Id", "home-loan", "home-loan"},
		{"header:X-Client-Id", "2001:db8::1", "2001:db8::1"},
		{"ip", "192.0.2.1", "192.0.2.1"},
		{"ip", "192.0.2.1/32", "192.0.2.1"},
		{"ip", "::ffff:192.0.2.1", "192.0.2.1"},
		{"ip", "2001:DB8:0::1", "2001:db8::/64"},
		{"ip", "2001:db8::/64", "2001:db8::/64"},
		{"host", "API.example.com", "api.example.com"},
		{"host", "[2001:DB8::1]", "2001:db8::1"},
		{"path", "/v1/product", "/v1/product"},
		{"mtls_subject", "CN=a,O=B", "CN=a,O=B"},
	} {
		f := fairShareOf(t, fmt.Sprintf("client: %s, capacity: 4, weights: {%q: 9}", row.client, row.written))
		if len(f.Weights) != 1 || f.Weights[row.want] != 9 {
			t.Errorf("%s %s: got %v, want %s", row.client, row.written, f.Weights, row.want)
		}
	}
}

// TestMemoryOfFairShare compares the memory in the summary with the memory in use. It runs in a
// process of its own, because the garbage of other tests may be freed at any time.
func TestMemoryOfFairShare(t *testing.T) {
	if race.On || !alone.Here(t) { // The race detector takes memory of its own.
		return
	}
	f := fairShareOf(t, "client: path, capacity: 1000000, cycle: 10ms, max_clients: 10000, count_once: 'header:X-Id'")
	before := heap()
	f.Weights = make(map[string]int64, f.MaxClients) // The limiter uses the same strings as names.
	for i := range f.MaxClients {
		f.Weights[fmt.Sprintf("/%0127d", i)] = 1
	}
	l, err := fairshare.New(0, f.Config)
	if err != nil {
		t.Fatal(err)
	}
	for cycle := range headgate.Instant(3) {
		for name := range f.Weights {
			l.Take(cycle*headgate.Instant(f.Cycle), fairshare.Request{Client: name, ID: name})
			l.Take(cycle*headgate.Instant(f.Cycle), fairshare.Request{Client: "stranger" + name})
		}
	}
	f.Weights = nil
	used := heap() - before
	if said := shareMemory(f); used > said || used < said/4 {
		t.Errorf("fair share takes %d bytes, but the summary says at most %d", used, said)
	}
	runtime.KeepAlive(l)
}

// heap returns the bytes of the heap in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
