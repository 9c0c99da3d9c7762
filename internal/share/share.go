package share

import "fmt"

// Division selects how a capacity is divided among demands.
type Division uint8

const (
	// Loan lends the lenders' surplus in proportion to the borrowers' demand beyond their
	// default shares.
	Loan Division = iota
	// MaxMin satisfies small demands first: a client's share grows only at the cost of
	// clients with larger shares.
	MaxMin
)

// divisionNames has the configuration words, in the order of the constants.
var divisionNames = [...]string{"loan", "max_min"}

// String returns the configuration word.
func (d Division) String() string { return divisionNames[min(int(d), len(divisionNames)-1)] }

// Divisions returns every division, in the order of the constants.
func Divisions() []Division { return []Division{Loan, MaxMin} }

// Bounds of the inputs. Within these bounds every size is exact: see the package comment.
const (
	// MaxCapacity bounds a capacity, in units.
	MaxCapacity = 1 << 40
	// MaxWeight bounds a client's weight.
	MaxWeight = 1_000_000
	// MaxDemand bounds a client's demand, in units. A larger demand counts as MaxDemand.
	MaxDemand = 1 << 62
	// MaxClients bounds the clients of one capacity. The caller must enforce this bound:
	// longer lists are not divided correctly.
	MaxClients = 1 << 19
)

// Client is one of the clients that share a capacity.
type Client struct {
	// Name decides between clients with equal claims to a unit: the name that sorts first
	// gets the unit. Of clients with equal names, the client earlier in the list gets it.
	Name string
	// Weight is the client's weight in proportion to the other weights: 1 to MaxWeight. A
	// value out of range counts as the nearest bound.
	Weight int64
	// Demand is the number of units requested: 0 to MaxDemand. A value out of range counts
	// as the nearest bound.
	Demand int64
}

func (c *Client) weight() uint64 { return uint64(min(max(c.Weight, 1), MaxWeight)) }
func (c *Client) demand() uint64 { return uint64(min(max(c.Demand, 0), MaxDemand)) }

// Terms are the parameters of a division.
type Terms struct {
	Division Division
	// Capacity is the number of units to divide: 0 to MaxCapacity.
	Capacity int64
	// Reservation is the percentage of its default share that every client keeps, whatever
	// its demand: 0 to 100.
	Reservation int
}

// Check returns an error that names the first term out of range and its value.
func (t Terms) Check() error {
	switch {
	case int(t.Division) >= len(divisionNames):
		return fmt.Errorf("share: division %d is not known: use one of %v", uint8(t.Division), Divisions())
	case t.Capacity < 0 || t.Capacity > MaxCapacity:
		return fmt.Errorf("share: capacity %d is out of range: use 0 to %d", t.Capacity, int64(MaxCapacity))
	case t.Reservation < 0 || t.Reservation > 100:
		return fmt.Errorf("share: reservation %d%% is out of range: use 0%% to 100%%", t.Reservation)
	}
	return nil
}

// Divide returns the size of each client, in the order of clients: the number of units of
// the capacity that the client may use. The sizes add up to the capacity exactly. Without
// clients the result is empty. Terms that Check refuses count as the nearest valid terms.
func (t Terms) Divide(clients []Client) []int64 {
	var s Scratch
	return s.Divide(t, clients)
}

// Default returns the default share of each client, in the order of clients: the capacity
// divided by weight alone, in whole units. The shares add up to the capacity exactly.
// Without clients the result is empty. A capacity out of range, 0 to MaxCapacity, counts
// as the nearest bound.
func Default(capacity int64, clients []Client) []int64 {
	var s Scratch
	return s.Default(capacity, clients)
}
