package holder

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/internal/lease/state"
)

// OnLoss says what a holder may use of a resource after a lease has ended without renewal. The sums
// are in docs/leases.md: these amounts come on top of the capacity that servers have given to others.
type OnLoss uint8

const (
	// Safe means the safe amount of the last lease: the one in the configuration of the server, or
	// else the capacity divided by the number of holders. It stays in force while the next server does not know all leases.
	Safe OnLoss = iota
	// Pessimistic means 0.
	Pessimistic
	// Optimistic means what the holder wants. Nothing bounds the sum of the holders. While the next server does not know all leases,
	// it means the safe amount.
	Optimistic
)

// String returns the configuration word.
func (o OnLoss) String() string {
	return [...]string{"safe", "pessimistic", "optimistic"}[min(o, Optimistic)]
}

// Bounds of what a holder takes from a server.
const (
	// MaxLength bounds the length of a lease.
	MaxLength = 24 * time.Hour
	// MaxText bounds the text of a refusal, in bytes.
	MaxText = 512
)

// Config is the configuration of a Holder.
type Config struct {
	// Name is the unguessable name of the holder: at most state.MaxName bytes.
	Name   string
	OnLoss OnLoss
	// Rand spreads the times of reports.
	Rand *rand.Rand
}

const (
	// interval and slotInterval are the shortest times between two reports of a changed claim. A
	// server divides no earlier.
	interval, slotInterval = 100 * time.Millisecond, 20 * time.Millisecond
	// shrinkInterval is the time from a report to the report of a smaller demand.
	shrinkInterval = 250 * time.Millisecond
	// leastRetry and mostRetry bound the time after which a claim without an answer is reported again.
	leastRetry, mostRetry = 500 * time.Millisecond, 5 * time.Second
	// refusedRetry is the time after which a refused claim is reported again.
	refusedRetry = 10 * time.Second
	// leastRefresh and defaultRefresh are for leases without a sensible refresh time.
	leastRefresh, defaultRefresh = time.Second, 5 * time.Second
	// optimistic is how long an optimistic holder waits for its first lease.
	optimistic = 2 * time.Second
	// limitedAfter is how long a holder must have less than it wants until it counts as limited. Others
	// shrink within this time.
	limitedAfter = 2 * time.Second
	// maxReleases bounds the releases that wait to be sent. Other leases end by time.
	maxReleases = state.MaxClaims
)

// Errors of Claim.
var (
	errName = fmt.Errorf("lease: the name of a resource has 1 to %d bytes", state.MaxName)
	errFull = fmt.Errorf("lease: a holder has at most %d resources: close leases, or use another client", state.MaxClaims)
	// ErrClaimed means that the holder has a claim on the resource.
	ErrClaimed = errors.New("lease: the resource is claimed already: share its lease, or close it first")
)
