package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// BenchmarkDrift has 10 resources with 5,000 holders each, of which 200 report in each tick of 20 ms, with wants that differ from the
// last ones by up to 5 %. The capacity is four fifths of what they want. One operation is one tick: 50 of them are a second.
func BenchmarkDrift(b *testing.B) {
	const resources, each, reports = 10, 5_000, 200
	random := rand.New(rand.NewPCG(1, 2))
	c := Config{
		Resources: []Resource{{Match: "db/*", Algorithm: MaxMin, Capacity: each * 80_000}}, Callers: map[string]Caller{},
		Lease: time.Minute, Refresh: 5 * time.Second,
	}
	s, err := New(c, 0)
	if err != nil {
		b.Fatal(err)
	}
	now, out, seq := headgate.Instant(0), Out{}, uint64(0)
	mean := make([]int64, resources*each)
	held := make(map[string]Lease, resources*each)
	report := func(i int, wants int64) {
		name := fmt.Sprint("h", i)
		seq++
		has := held[name]
		claims := []Claim{{Resource: fmt.Sprint("db/", i%resources), Wants: wants, Version: has.Version, Holds: has.Amount, Left: time.Minute}}
		if err := s.Receive(now, "", &Report{Holder: name, Seq: seq, Claims: claims}, &out); err != nil {
			b.Fatal(err)
		}
	}
	tick := func() {
		now = now.Add(20 * time.Millisecond)
		s.Advance(now, &out)
		leases := slices.Clone(out.Leases)
		out.Reset()
		for _, d := range leases {
			held[d.Holder] = d.Lease
			seq++
			acks := []Ack{{Resource: d.Lease.Resource, Version: d.Lease.Version, Holds: d.Lease.Amount}}
			if err := s.Receive(now, "", &Report{Holder: d.Holder, Seq: seq, Acks: acks}, &out); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i := range mean {
		mean[i] = 20_000 + random.Int64N(160_000)
		report(i, mean[i])
		if i%reports == 0 {
			tick()
		}
	}
	at := 0
	for b.Loop() {
		for range reports {
			report(at, mean[at]+mean[at]*(random.Int64N(11)-5)/100)
			at = (at + 1) % len(mean)
		}
		tick()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)*50/1e9, "cores")
}
