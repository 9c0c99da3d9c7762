package fairshare

import "github.com/headgate/headgate/internal/share"

// Division selects how a capacity is divided among demands.
type Division = share.Division

const (
	// Loan lends the lenders' surplus in proportion to the borrowers' demand beyond their default shares.
	Loan Division = share.Loan
	// MaxMin satisfies small demands first: a client's share grows only at the cost of clients with larger shares.
	MaxMin Division = share.MaxMin
)
