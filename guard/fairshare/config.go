package fairshare

import (
	"time"
)

// Reclaim selects when lent capacity returns to its owner.
type Reclaim uint8

const (
	// AtOnce releases loans as the cycle passes. An owner that returns is served at once,
	// up to its remaining entitlement for the cycle.
	AtOnce Reclaim = iota
	// NextCycle lends at the start of a cycle. An owner that returns waits for the next
	// cycle.
	NextCycle
)

// reclaimNames has the configuration words, in the order of the constants.
var reclaimNames = [...]string{"at_once", "next_cycle"}

// String returns the configuration word.
func (r Reclaim) String() string { return reclaimNames[min(int(r), len(reclaimNames)-1)] }

// Reclaims returns every Reclaim, in the order of the constants.
func Reclaims() []Reclaim { return []Reclaim{AtOnce, NextCycle} }

// Others is the name of the bucket that is shared by all clients without a share of their
// own. A client that uses this name is in the bucket.
const Others = "others"

// Config configures a [Limiter].
type Config struct {
	// Capacity is the number of units that all clients together may use in a cycle: 0 to
	// share.MaxCapacity. Newcomers with trusted names can use one default share more.
	Capacity int64
	// Cycle is the length of a cycle: LeastCycle to MostCycle. Cycles start at multiples of
	// this length since the Unix epoch.
	Cycle time.Duration
	// Reservation is the percentage of its default share that an idle client keeps: 0 to
	// 100.
	Reservation int
	// Division selects how the unused shares of idle clients are lent.
	Division Division
	// Reclaim selects when lent capacity returns to its owner.
	Reclaim Reclaim
	// Weights are the weights of named clients: 1 to MostWeight. Other clients have weight
	// 1. The named clients are registered from the start and are never forgotten.
	Weights map[string]int64
	// NewClientsPerCycle is the number of new names that get shares of their own in one
	// cycle: 0 to MostNewClients.
	NewClientsPerCycle int
	// ForgetAfter is the number of cycles without a request after which a client is
	// forgotten: at least 1.
	ForgetAfter int
	// MaxClients bounds the clients with shares of their own, including the clients in
	// Weights: 1 to MostClients.
	MaxClients int
	// TrustNames states that clients cannot invent names, because a gateway sets or
	// verifies the names. Then names that are younger than Lasting have the same default
	// shares as all others, and newcomers can use one default share beyond the Capacity.
	TrustNames bool
	// CountOnce counts requests with the same ID once in a cycle's demand.
	CountOnce bool
	// Seed makes two simulations with the same requests give the same shares. 0 hashes names under a secret: a server needs it,
	// so that no client can choose names that take the places of others.
	Seed uint64
}

// Lasting is the time for which a client must be established, without being forgotten,
// until later names no longer reduce its default share. See the package comment.
const Lasting = time.Hour

// Bounds of a Config.
const (
	LeastCycle  = 10 * time.Millisecond
	MostCycle   = time.Hour
	MostWeight  = 1_000_000
	MostClients = 10_000
	// MostNewClients is small because each newcomer copies the map of the cycle's newcomers.
	MostNewClients = 1_000
)
