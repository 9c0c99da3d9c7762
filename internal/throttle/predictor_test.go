package throttle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

func newPredictor(routes int) *predictor {
	return &predictor{pairs: newTable[pair, mean](8 * routes), routes: newTable[string, route](routes)}
}

// found returns a request whose levels are found.
func (p *predictor) found(name string, id uint32) *Request {
	r := &Request{Route: name, tenant: &tenant{id: id}}
	p.find(r)
	return r
}

// teach teaches n requests that take a time.
func (p *predictor) teach(name string, tenant uint32, n int, elapsed time.Duration) {
	for range n {
		p.learn(0, p.found(name, tenant), elapsed, elapsed)
	}
}

func (p *predictor) predicts(t *testing.T, name string, tenant uint32, want time.Duration) {
	t.Helper()
	level := p.found(name, tenant).level
	if want == 0 {
		if level != nil {
			t.Errorf("%s of %d: %v, want no prediction", name, tenant, level.prediction())
		}
		return
	}
	if level == nil || level.prediction().work != want {
		t.Errorf("%s of %d: %+v, want %v", name, tenant, level, want)
	}
}

// TestLevels: the pair predicts, or else the route, or else all requests, each after 5 samples.
func TestLevels(t *testing.T) {
	p := newPredictor(10)
	p.teach("/", 1, 4, time.Millisecond)
	p.predicts(t, "/", 1, 0)
	p.teach("/", 1, 1, time.Millisecond)
	p.predicts(t, "/", 1, time.Millisecond)  // the pair
	p.predicts(t, "/", 2, time.Millisecond)  // the route
	p.predicts(t, "/x", 2, time.Millisecond) // all
}

// TestMeanIsItsTwin compares the mean with the plain sum of weighted samples.
func TestMeanIsItsTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	m, samples := &mean{}, []float64{}
	for range 200 {
		x := random.Float64() * 1e8
		m.learn(0, time.Duration(x), time.Duration(x), 1)
		samples = append(samples, math.Trunc(x))
		want, rest := 0.0, 1.0
		for i, sample := range slices.Backward(samples) {
			weight := max(workWeight, 1/float64(i+1))
			want += rest * weight * sample
			rest *= 1 - weight
		}
		if math.Abs(m.work-want) > 1e-6*want {
			t.Fatalf("after %d samples: %v, want %v", len(samples), m.work, want)
		}
	}
}

// TestOneTenantsInfluence: a tenant that sends 99 of 100 requests, with 20 times the work, moves
// the route's mean by less than the mean of all requests would.
func TestOneTenantsInfluence(t *testing.T) {
	p := newPredictor(10)
	p.teach("/", 1, 50, time.Millisecond)
	random := rand.New(rand.NewPCG(1, 4))
	sum, n := time.Duration(0), 0
	for i := range 20_000 {
		tenant, elapsed := uint32(9), 20*time.Millisecond
		if random.IntN(100) == 0 {
			tenant, elapsed = uint32(1+random.IntN(5)), time.Millisecond
		}
		p.teach("/", tenant, 1, elapsed)
		if i > 1000 {
			level := p.found("/", 77).level
			sum, n = sum+level.prediction().work, n+1
		}
	}
	if mean := sum / time.Duration(n); mean > 19*time.Millisecond {
		t.Errorf("a new tenant's request is predicted to take %v", mean)
	}
}

// TestBounds: routes and pairs are bounded, and a route that gave way is unknown again.
func TestBounds(t *testing.T) {
	p := newPredictor(10)
	for i := range 1000 {
		p.teach(fmt.Sprint("/", i), uint32(i), 5, time.Millisecond)
	}
	if len(p.routes.entries) != 10 || len(p.pairs.entries) != 80 {
		t.Errorf("%d routes and %d pairs, want 10 and 80", len(p.routes.entries), len(p.pairs.entries))
	}
	p.all = mean{}
	p.predicts(t, "/999", 999, time.Millisecond)
	p.predicts(t, "/0", 0, 0)
}

// TestLateLesson: a request whose route gave way meanwhile teaches no other route.
func TestLateLesson(t *testing.T) {
	p := newPredictor(1)
	p.teach("/old", 1, 5, time.Millisecond)
	r := p.found("/old", 1)
	p.teach("/new", 1, 5, time.Second)
	for range 100 {
		p.learn(0, r, time.Millisecond, time.Millisecond)
	}
	p.predicts(t, "/new", 1, time.Second)
}

// TestLateMiss: a cancelled request whose route gave way meanwhile teaches no other route.
func TestLateMiss(t *testing.T) {
	p := newPredictor(1)
	p.teach("/old", 1, 5, time.Millisecond)
	old := p.found("/old", 2).level
	p.teach("/new", 1, 5, time.Millisecond)
	for range 100 {
		old.miss(0, time.Second)
	}
	if level := p.found("/new", 2).level; level.prediction().time != time.Millisecond {
		t.Errorf("the prediction of another route is %+v", level.prediction())
	}
}

// TestMisses: requests that are cancelled teach nothing while most others are answered. Once few
// are answered, the prediction follows.
func TestMisses(t *testing.T) {
	m := &mean{}
	for range 50 {
		m.learn(0, time.Millisecond, time.Millisecond, 1)
	}
	for range 5 {
		m.miss(0, time.Second)
	}
	if m.prediction().time != time.Millisecond {
		t.Errorf("after five misses the time is %v", m.prediction().time)
	}
	for range 50 {
		m.miss(0, time.Second)
	}
	if p := m.prediction(); p.time < 900*time.Millisecond || p.work != time.Millisecond {
		t.Errorf("after many misses the prediction is %+v", p)
	}
}

// Slow requests to one route, whose callers wait for long, do not refuse requests to routes without samples.
func TestSlowRouteLeavesNewRoutes(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 4})
	for i := range 20 {
		slow := "slow" + strconv.Itoa(i)
		s.is(s.arrives(slow, "sheddable_plus a /slow", 60_000), slow+" goes")
		s.after(3000)
		s.ends(slow, 0)
	}
	for i := range 10 {
		fast := "fast" + strconv.Itoa(i)
		s.is(s.arrives(fast, "sheddable_plus b /"+fast, 1000), fast+" goes")
		s.after(10)
		s.ends(fast, 0)
	}
}

// Slow clients, whose requests hold their places for long, do not make an idle service refuse their route: the first
// request after 200 ms shows that the route is fast.
func TestSlowClientsLeaveTheirRoute(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 4})
	for i := range 20 {
		slow := "slow" + strconv.Itoa(i)
		s.is(s.arrives(slow, "sheddable_plus a /upload", 60_000), slow+" goes")
		s.after(3000)
		s.ends(slow, 0)
	}
	s.after(200)
	for i := range 10 {
		fast := "fast" + strconv.Itoa(i)
		s.is(s.arrives(fast, "sheddable_plus a /upload", 1000), fast+" goes")
		s.after(10)
		s.ends(fast, 0)
	}
}
