package state

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/share"
)

// Bounds of a server. They bound its memory, whatever its holders send.
const (
	// MaxResources bounds the resources with claims.
	MaxResources = 10_000
	// MaxHolders bounds the holders.
	MaxHolders = 100_000
	// MaxTotalClaims bounds the claims of all holders: two for each holder at the bound.
	MaxTotalClaims = 200_000
	// MaxClaims bounds the claims and acknowledgements of one report.
	MaxClaims = 1_000
	// MaxName bounds names of resources and holders, in bytes.
	MaxName = 256
	// MaxAmount bounds capacities and wants.
	MaxAmount = share.MaxCapacity
	// MaxWeight bounds the weight of a caller: 100,000 holders need 10 clients of share.
	MaxWeight = 100
	// MaxBands bounds the priority bands.
	MaxBands = 8
	// MaxBuckets bounds the buckets of a curve: 81 ratios below 2^40 in each band.
	MaxBuckets = 81 * MaxBands
	// MaxTotalBuckets bounds the buckets of all curves: 48 MB. Beyond, a curve is kept as one bucket for each band.
	MaxTotalBuckets = 2_000_000
	// MaxBucketWeight bounds the weight of one bucket. share takes it in 64 pieces.
	MaxBucketWeight = 64 * share.MaxWeight
)

// Algorithm says how a capacity is divided.
type Algorithm uint8

const (
	// None gives each claim what it wants.
	None Algorithm = iota
	// Static gives each claim what it wants, up to the capacity.
	Static
	// Proportional lends the unused parts of default shares in proportion to the demand beyond
	// them. Default shares are proportional to the weights.
	Proportional
	// MaxMin satisfies small claims first, in proportion to the weights.
	MaxMin
)

// Loss says what a server divides when the lease of its parent has ended. It comes on top of the
// capacity of the root.
type Loss uint8

const (
	// LossSafe divides the safe amount of the resource for each holder, also while the parent does not know all leases.
	LossSafe Loss = iota
	// LossPessimistic divides nothing: answers wait for the parent.
	LossPessimistic
	// LossOptimistic gives each claim what it wants. While the parent does not know all leases, it is LossSafe.
	LossOptimistic
)

// String returns the configuration word.
func (l Loss) String() string {
	return [...]string{"safe", "pessimistic", "optimistic"}[min(l, LossOptimistic)]
}

// String returns the configuration word.
func (a Algorithm) String() string {
	return [...]string{"none", "static", "proportional", "max_min"}[min(a, MaxMin)]
}

// divides reports whether the sum of the claims is bounded by the capacity.
func (a Algorithm) divides() bool { return a >= Proportional }

// Resource is the configuration of the resources that match a pattern.
type Resource struct {
	// Match is a name, or a pattern in which "*" matches any text, "/" included.
	Match string
	// Capacity is divided among the claims: thousandths of a unit per second, or slots. 0 to
	// MaxAmount.
	Capacity int64
	// MinCapacity is the least capacity to which calls that the resource refused lower it: 1 to Capacity, or 0 if they have no
	// effect.
	MinCapacity int64
	Algorithm   Algorithm
	// Slots says that amounts are slots (unit: in_flight) and not rates.
	Slots bool
	// Safe is what a holder may use when it cannot renew. Below 0, it is the capacity divided by
	// the number of holders.
	Safe int64
	// Floors has the floor of each priority band in percent of the capacity. The sum is at most
	// 100. Without floors there is one band.
	Floors []int
}

// Caller is what a caller may do. Its holders have no influence on it.
type Caller struct {
	// Weight is 1 to MaxWeight. 0 means 1.
	Weight int64
	// Bands are the allowed bands, 1 is served first. The first one is used by claims without a
	// band. An empty list means band 1.
	Bands []int
	// Server allows curves: the claims of holders below it.
	Server bool
}

// Config is the configuration of a Server.
type Config struct {
	// Resources of a root. An exact name is found first, then patterns in order.
	Resources []Resource
	// Child says that capacities come from a parent. Resources must be empty.
	Child bool
	// OnLoss says what a child divides without a lease of its parent.
	OnLoss Loss
	// Callers has the callers by name. Other callers have weight 1 and band 1.
	Callers map[string]Caller
	// Lease is the length of leases, and Refresh is how often holders report.
	Lease, Refresh time.Duration
	// Tick is the time for which changes are collected before a division. 0 means 20 ms.
	Tick time.Duration
	// Term is larger than the term of every earlier master of the same group.
	Term uint64
	// Restarted says that leases of an earlier server may be out.
	Restarted bool
	// Longest is the longest lease that may be out. 0 means Lease.
	Longest time.Duration
	// Marked says that Out.Marks are stored for the next master of a group. The ledger of a resource exceeds a mark only after Stored.
	// Marks are those of the earlier master. The Server reads the map and does not change it.
	Marked bool
	Marks  map[string]int64
	// Learn is how long a restarted server listens before it divides. 0 means 1 s.
	Learn time.Duration
}

const (
	defaultTick  = 20 * time.Millisecond
	defaultLearn = time.Second
)

func (c *Config) defaults() {
	if c.Tick == 0 {
		c.Tick = defaultTick
	}
	if c.Learn == 0 {
		c.Learn = defaultLearn
	}
	if c.Longest == 0 {
		c.Longest = c.Lease
	}
}

// Check returns an error that names the first wrong field and its value.
func (c *Config) Check() error {
	switch {
	case c.Refresh <= 0 || c.Lease <= c.Refresh:
		return fmt.Errorf("lease: lease %v and refresh %v: use a refresh above 0 and a longer lease", c.Lease, c.Refresh)
	case c.Tick < 0 || c.Learn < 0 || c.Longest < 0:
		return fmt.Errorf("lease: tick %v, learn %v or longest lease %v is negative", c.Tick, c.Learn, c.Longest)
	case c.Child && len(c.Resources) > 0:
		return fmt.Errorf("lease: %d resources of a server with a parent: configure resources at the root", len(c.Resources))
	}
	for i := range c.Resources {
		if err := c.Resources[i].check(); err != nil {
			return err
		}
	}
	for name, caller := range c.Callers {
		if err := caller.check(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *Resource) check() error {
	sum := 0
	for _, floor := range r.Floors {
		if sum += floor; floor < 0 {
			return fmt.Errorf("lease: resource %q: floor %d%%: use 0%% to 100%%", r.Match, floor)
		}
	}
	switch {
	case r.Match == "" || len(r.Match) > MaxName:
		return fmt.Errorf("lease: resource %q: the pattern has %d bytes: use 1 to %d", r.Match, len(r.Match), MaxName)
	case r.Capacity < 0 || r.Capacity > MaxAmount || r.Safe > MaxAmount:
		const text = "lease: resource %q: capacity %d, safe capacity %d: use at most %d"
		return fmt.Errorf(text, r.Match, r.Capacity, r.Safe, int64(MaxAmount))
	case r.MinCapacity < 0 || r.MinCapacity > r.Capacity:
		return fmt.Errorf("lease: resource %q: min capacity %d: use 0 to the capacity, %d", r.Match, r.MinCapacity, r.Capacity)
	case r.Algorithm > MaxMin:
		return fmt.Errorf("lease: resource %q: algorithm %d is not known", r.Match, r.Algorithm)
	case sum > 100:
		return fmt.Errorf("lease: resource %q: the floors add up to %d%%: use at most 100%%", r.Match, sum)
	case len(r.Floors) > MaxBands:
		return fmt.Errorf("lease: resource %q: %d bands: use at most %d", r.Match, len(r.Floors), MaxBands)
	}
	return nil
}

func (c Caller) check(name string) error {
	if c.Weight < 0 || c.Weight > MaxWeight {
		return fmt.Errorf("lease: caller %q: weight %d: use 1 to %d", name, c.Weight, MaxWeight)
	}
	for _, band := range c.Bands {
		if band < 1 || band > MaxBands {
			return fmt.Errorf("lease: caller %q: band %d: use 1 to %d", name, band, MaxBands)
		}
	}
	return nil
}

// find returns the resource of a name: an equal name first, then the first pattern that matches.
func find(resources []Resource, name string) *Resource {
	for i := range resources {
		if resources[i].Match == name {
			return &resources[i]
		}
	}
	for i := range resources {
		if matches(resources[i].Match, name) {
			return &resources[i]
		}
	}
	return nil
}

// matches reports whether the pattern matches the whole name. The time is at most the product
// of the lengths: after a mismatch, only the last "*" takes one more byte.
func matches(pattern, name string) bool {
	p, star, from := 0, -1, 0
	for n := 0; n < len(name); {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
