package throttle

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestAllocatesNothing checks the whole way of queued and of admitted requests, once the tenants
// and routes are known.
func TestAllocatesNothing(t *testing.T) {
	under, err := New(Config{Concurrency: 2, MaxWaiters: 50})
	if err != nil {
		t.Fatal(err)
	}
	tenants, routes := []string{"a", "b", "c", "d"}, []string{"/", "/x"}
	requests := make([]Request, 100)
	now := headgate.Instant(time.Hour)
	i := 0
	step := func() {
		now = now.Add(time.Millisecond)
		r := &requests[i%len(requests)]
		under.Leave(now, r, Ended{Work: time.Millisecond})
		r.Class, r.Tenant, r.Route = Class(i%ClassCount), tenants[i%len(tenants)], routes[i%len(routes)]
		r.Deadline = now.Add(time.Second)
		under.Arrive(now, r)
		for next, _ := under.Next(now); next != nil; next, _ = under.Next(now) {
			_ = next
		}
		i++
	}
	for range 1000 {
		step()
	}
	if n := testing.AllocsPerRun(10_000, step); n != 0 {
		t.Errorf("a request allocates %v times, want 0", n)
	}
}

// BenchmarkRequest measures Arrive, Next and Leave of an admitted request, with 1,000 tenants.
func BenchmarkRequest(b *testing.B) {
	under, err := New(Config{Concurrency: 1 << 19})
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	r, now := &Request{Route: "/"}, headgate.Instant(time.Hour)
	b.ReportAllocs()
	for i := range b.N {
		now = now.Add(10 * time.Microsecond)
		r.Tenant, r.Deadline = names[i%len(names)], now.Add(time.Second)
		under.Arrive(now, r)
		under.Next(now)
		under.Leave(now, r, Ended{})
	}
}
