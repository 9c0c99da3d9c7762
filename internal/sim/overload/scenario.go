package overload

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/throttle"
)

// Scenario is one traffic and one service. The zero values of its fields mean: no such effect.
type Scenario struct {
	Name string
	// Costs draws routes and their work.
	Costs Costs
	// Load is the demand, retries not counted, in parts of the capacity.
	Load float64
	// BurstLoad is the demand from BurstFrom to BurstTo.
	BurstLoad          float64
	BurstFrom, BurstTo time.Duration
	// SpeedFrom and SpeedTo are the speed of the service before and after SpeedAt. 0 is 1.
	SpeedFrom, SpeedTo float64
	SpeedAt            time.Duration
	// Slow lets every third route wait 400 ms in place of 20 ms between SlowFrom and SlowTo.
	Slow             bool
	SlowFrom, SlowTo time.Duration
	// From HangFrom to HangTo, the service answers nothing. The proxy gives up an attempt after 2 s.
	HangFrom, HangTo time.Duration
	// SlowBodies is the part of the attempts in the hang whose bodies take 3 s to arrive. Their clients do not give up.
	SlowBodies float64
	// Pool is the number of connections that each job needs for a mean of 10 ms. A job's CPU
	// is then a fifth.
	Pool int
	// Abuse lets the first tenant send 90 % of all requests; Lie marks them all critical_plus.
	Abuse, Lie bool
	// Poison multiplies the work of the first tenant.
	Poison float64
	// RefusalCPU is the CPU time that the service spends for each refusal.
	RefusalCPU time.Duration
	// Measured is the part of the time that counts. Zero is 20 s to 60 s.
	From, To time.Duration
	// Tenants is the number of tenants. 0 is ten.
	Tenants int
	// Wait is the mean wait of a job. 0 is 10 ms.
	Wait time.Duration
}

// Costs are the routes of a service and their work.
type Costs interface {
	// Draw returns a route and its CPU time.
	Draw(r *rand.Rand) (route int, cpu time.Duration)
	// Mean returns the mean CPU time.
	Mean() time.Duration
	// Routes returns the number of routes.
	Routes() int
}

// Bimodal has 90 % requests of 1 ms and 10 % of 100 ms, on two routes, or on one if Hidden.
type Bimodal struct{ Hidden bool }

// Draw implements Costs.
func (b Bimodal) Draw(r *rand.Rand) (int, time.Duration) {
	if r.Float64() < 0.9 {
		return 0, time.Millisecond
	}
	if b.Hidden {
		return 0, 100 * time.Millisecond
	}
	return 1, 100 * time.Millisecond
}

// Mean implements Costs.
func (Bimodal) Mean() time.Duration { return 10_900 * time.Microsecond }

// Routes implements Costs.
func (b Bimodal) Routes() int {
	if b.Hidden {
		return 1
	}
	return 2
}

// Lognormal has 20 equally frequent routes with means of 5 e^z ms, z even in ±1.645, and a
// deviation of 0.5 within each.
type Lognormal struct{}

const lognormalRoutes, lognormalSigma = 20, 0.5

// Draw implements Costs.
func (Lognormal) Draw(r *rand.Rand) (int, time.Duration) {
	route := r.IntN(lognormalRoutes)
	spread := math.Exp(lognormalSigma*r.NormFloat64() - lognormalSigma*lognormalSigma/2)
	return route, time.Duration(routeMean(route) * spread)
}

// routeMean is the mean of a lognormal route in nanoseconds.
func routeMean(route int) float64 {
	z := 1.645 * (2*float64(route)/(lognormalRoutes-1) - 1)
	return 5 * math.Exp(z) * float64(time.Millisecond)
}

// Mean implements Costs.
func (Lognormal) Mean() time.Duration {
	var sum float64
	for i := range lognormalRoutes {
		sum += routeMean(i)
	}
	return time.Duration(sum / lognormalRoutes)
}

// Routes implements Costs.
func (Lognormal) Routes() int { return lognormalRoutes }

// The bounds and names that all scenarios share.
const (
	cores       = 4
	deadline    = 500 * time.Millisecond
	maxAttempts = 3
	backoff     = 50 * time.Millisecond
	poolTime    = 10 * time.Millisecond
	hangTimeout = 2 * time.Second
	slowBody    = 3 * time.Second
	// slowFrom, slowBy and leastSpeed describe the loss by many runnable jobs.
	slowFrom, slowBy, leastSpeed = 64, 0.001, 0.05
)

// classOf draws a class: 2, 8, 50 and 40 %.
func classOf(r *rand.Rand) throttle.Class {
	switch x := r.Float64(); {
	case x < 0.02:
		return throttle.CriticalPlus
	case x < 0.10:
		return throttle.Critical
	case x < 0.60:
		return throttle.SheddablePlus
	default:
		return throttle.Sheddable
	}
}

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = prefix + strconv.Itoa(i)
	}
	return all
}
