package fairshare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// asked is an admitted request of an owner.
type asked struct {
	at   headgate.Instant
	cost int64
}

// owner is the test's record of a client in the running cycle.
type owner struct {
	name     string
	fair     int64
	used     int64
	admitted []asked
}

// excuse reports whether the package comment allows a refusal of cost at now. Then, since some
// moment of the cycle, the owner has requested more than its entitlement of that moment,
// including this request. Between two requests the entitlement only falls, so only the
// times of the requests matter.
func (o *owner) excuse(start headgate.Instant, w time.Duration, now headgate.Instant, cost int64) bool {
	owed := func(s headgate.Instant) int64 { return o.fair * int64(start.Add(w).Sub(s)) / int64(w) }
	since := cost
	if since > owed(now) {
		return true
	}
	for _, last := range slices.Backward(o.admitted) {
		since += last.cost
		if since > owed(last.at) {
			return true
		}
	}
	return false
}

// TestOwnersAreOwedTheRest checks the first bound of the package comment. Whatever others
// request, an owner within its default share is refused only if, since some moment, it
// requested more than its entitlement of that moment.
func TestOwnersAreOwedTheRest(t *testing.T) {
	var within, refusals, bursts int
	seeds := uint64(alone(120))
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 2))
		w := [...]time.Duration{10 * time.Millisecond, time.Second, 7 * time.Second}[r.IntN(3)]
		owners, list := make([]*owner, 1+r.IntN(6)), []share.Client(nil)
		c := Config{
			Capacity: [...]int64{7, 40, 100, 1000, 12_345}[r.IntN(5)], Cycle: w, Reservation: r.IntN(101), Division: share.Divisions()[r.IntN(2)],
			Weights: map[string]int64{}, ForgetAfter: 1, MaxClients: 100,
		}
		for i := range owners {
			owners[i] = &owner{name: fmt.Sprint("owner-", i)}
			c.Weights[owners[i].name] = 1 + r.Int64N(3)
			list = append(list, share.Client{Name: owners[i].name, Weight: c.Weights[owners[i].name]})
		}
		for i, n := range share.Default(c.Capacity, list) {
			owners[i].fair = n
		}
		now := headgate.Instant(r.Int64N(int64(time.Hour)))
		if seed%2 == 0 {
			now -= now % headgate.Instant(w) // Use round parts of a cycle.
		}
		l, err := New(now, c)
		if err != nil {
			t.Fatal(err)
		}
		start := l.current.Load().start
		for range 2000 {
			now = now.Add(pause(r, w))
			for now >= start.Add(w) {
				start = start.Add(w)
				for _, o := range owners {
					o.used, o.admitted = 0, o.admitted[:0]
				}
			}
			o, many, cost := owners[r.IntN(len(owners))], 1, 1+r.Int64N(1+r.Int64N(5))
			if r.IntN(8) == 0 {
				many = r.IntN(int(2*o.fair) + 2) // A burst, or a flood.
			}
			for range min(many, 300) {
				fits := o.used+cost <= o.fair
				d, _ := l.Take(now, Request{Client: o.name, Cost: cost})
				if fits {
					within++
				}
				switch {
				case d.Verdict == headgate.Allow:
					o.used += cost
					o.admitted = append(o.admitted, asked{now, cost})
				case fits && !o.excuse(start, w, now, cost):
					t.Fatalf("seed %d: %v of %+v into a cycle of %v, capacity %d, %s is refused cost %d after using %d of %d, within its entitlement",
						seed, now.Sub(start), w, w, c.Capacity, o.name, cost, o.used, o.fair)
				case fits:
					bursts++
				default:
					refusals++
				}
			}
		}
	}
	t.Logf("%d requests within default shares, %d refused in bursts; %d refusals above default shares", within, bursts, refusals)
	if within < int(seeds)*400 || bursts < int(seeds) || refusals < int(seeds)*80 {
		t.Error("too few requests or refusals for this test")
	}
}

// pause returns the time between two requests: often 0, sometimes most of a cycle.
func pause(r *rand.Rand, w time.Duration) time.Duration {
	switch r.IntN(10) {
	case 0:
		return time.Duration(r.Int64N(int64(w)))
	case 1, 2:
		return w / 100 * time.Duration(r.IntN(10)) // Round parts of a cycle.
	case 3, 4, 5, 6:
		return time.Duration(r.Int64N(int64(w) / 100))
	default:
		return 0
	}
}

// TestOwedToTheUnit checks that an owner can use its exact entitlement: 29 of 100 units when
// 29 % of the cycle remain.
func TestOwedToTheUnit(t *testing.T) {
	for part := range 100 {
		l, err := New(0, Config{
			Capacity: 200, Cycle: time.Second, Weights: map[string]int64{"owner": 1, "flood": 1}, ForgetAfter: 1, MaxClients: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		now := headgate.Instant(part) * headgate.Instant(time.Second) / 100
		for range 300 {
			l.Take(now, Request{Client: "flood"})
		}
		served, owed := 0, 100-part
		for range owed {
			if d, _ := l.Take(now, Request{Client: "owner"}); d.Verdict == headgate.Allow {
				served++
			}
		}
		if served < owed {
			t.Errorf("%d %% of the cycle remains: %d of %d units are served", 100-part, served, owed)
		}
	}
}
