package share

import "fmt"

// Division says how a capacity is divided among demands.
type Division uint8

const (
	// Loan lends what lenders leave in proportion to what borrowers ask beyond their
	// default shares.
	Loan Division = iota
	// MaxMin satisfies small demands first: nobody's share grows but at the cost of
	// who has more.
	MaxMin
)

// divisionNames holds the words of configurations, in the order of the constants.
var divisionNames = [...]string{"loan", "max_min"}

// String gives the word that configurations use.
func (d Division) String() string { return divisionNames[min(int(d), len(divisionNames)-1)] }

// Divisions lists every division, in the order of the constants.
func Divisions() []Division { return []Division{Loan, MaxMin} }

// Bounds of what is divided. Within them every size is exact: see the package comment.
const (
	// MaxCapacity bounds a capacity, in units.
	MaxCapacity = 1 << 40
	// MaxWeight bounds a client's weight.
	MaxWeight = 1_000_000
	// MaxDemand bounds what of a client's demand is looked at, in units.
	MaxDemand = 1 << 62
	// MaxClients bounds how many clients one capacity is divided among. Whoever keeps
	// the list of clients holds it; more are not divided right.
	MaxClients = 1 << 19
)

// Client is one that a capacity is divided among.
type Client struct {
	// Name orders clients with equal rights to a unit that cannot be divided: the one
	// that sorts first has it. Of clients with one name, the one earlier in the list has.
	Name string
	// Weight is the client's part of the capacity, in proportion to the others': 1 to
	// MaxWeight. What is beyond counts as the nearest.
	Weight int64
	// Demand is what it asked for, in units: 0 to MaxDemand. What is beyond counts as
	// the nearest.
	Demand int64
}

func (c *Client) weight() uint64 { return uint64(min(max(c.Weight, 1), MaxWeight)) }
func (c *Client) demand() uint64 { return uint64(min(max(c.Demand, 0), MaxDemand)) }

// Terms are the terms of a division.
type Terms struct {
	Division Division
	// Capacity is what is divided, in units: 0 to MaxCapacity.
	Capacity int64
	// Reservation is the part of its default share that a client keeps whatever it
	// asks for, in percent: 0 to 100.
	Reservation int
}

// Check says which of the terms is out of range, and what is in it.
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

// Divide gives each client its size: what it may use of the capacity, in units, in
// the order of clients. The sizes add up to the capacity exactly; without clients
// there are none. Terms that Check refuses are taken for the nearest that it does not.
func (t Terms) Divide(clients []Client) []int64 {
	var s Scratch
	return s.Divide(t, clients)
}

// Default gives each client its default share: the capacity by weight alone, in
// whole units, in the order of clients. They add up to the capacity exactly;
// without clients there are none. The capacity is 0 to MaxCapacity, and what is
// beyond counts as the nearest.
func Default(capacity int64, clients []Client) []int64 {
	var s Scratch
	return s.Default(capacity, clients)
}
