package fairshare

import (
	"time"

	"github.com/headgate/headgate/share"
)

// Reclaim says when lent capacity comes back to its owner.
type Reclaim uint8

const (
	// AtOnce releases loans as the cycle passes: an owner that returns is served at
	// once, up to what the rest of the cycle owes it.
	AtOnce Reclaim = iota
	// NextCycle hands loans out at the cycle's start: an owner waits for the next.
	NextCycle
)

// reclaimNames holds the words of configurations, in the order of the constants.
var reclaimNames = [...]string{"at_once", "next_cycle"}

// String gives the word that configurations use.
func (r Reclaim) String() string { return reclaimNames[min(int(r), len(reclaimNames)-1)] }

// Reclaims lists every setting, in the order of the constants.
func Reclaims() []Reclaim { return []Reclaim{AtOnce, NextCycle} }

// Others is the name of the bucket that names share which have no share of their own.
// Who calls himself so is in it.
const Others = "others"

// Config says what is shared, and how.
type Config struct {
	// Capacity is what all clients together may use in a cycle, in units: 0 to
	// share.MaxCapacity.
	Capacity int64
	// Cycle is how long shares hold: LeastCycle to MostCycle. Cycles begin at its
	// whole multiples since the Unix epoch.
	Cycle time.Duration
	// Reservation is the part of its default share that an idle client keeps, in
	// percent: 0 to 100.
	Reservation int
	// Division says how what is left of idle clients' shares is lent.
	Division share.Division
	// Reclaim says when it comes back.
	Reclaim Reclaim
	// Weights are the parts of named clients in proportion to 1, the others': 1 to
	// MostWeight. They are in the registry from the start and never forgotten.
	Weights map[string]int64
	// NewClientsPerCycle is how many new names get shares of their own in one cycle: 0
	// to MostNewClients.
	NewClientsPerCycle int
	// ForgetAfter is after how many cycles without a request a client is forgotten; at least 1.
	ForgetAfter int
	// MaxClients bounds the clients with shares of their own, those of Weights among
	// them: 1 to MostClients.
	MaxClients int
	// TrustNames says that clients cannot invent names: a gateway sets them, or they are
	// verified. Then names that come later than Lasting ago have default shares as all others.
	TrustNames bool
	// CountOnce lets requests of one ID count once in a cycle's demand.
	CountOnce bool
}

// Lasting is the time that a client has to be established, without being forgotten, until
// names that come later leave it its default share: see the package comment.
const Lasting = time.Hour

// Bounds of a Config.
const (
	LeastCycle  = 10 * time.Millisecond
	MostCycle   = time.Hour
	MostWeight  = 1_000_000
	MostClients = 10_000
	// Each newcomer is a new index of the cycle's newcomers.
	MostNewClients = 1_000
)
