package bucket

import "time"

// Source gives leases. The Client of client/lease has one.
type Source interface {
	// Lease claims a resource, for so many waiting units. changed is called after each change of what may be spent,
	// renewals included, first perhaps before Lease returns. Its calls come one at a time. changed must not block, and
	// must not call the Source or its leases. The resource must not have a lease.
	Lease(resource string, waiting int64, changed func(Rate)) (Lease, error)
}

// Lease is one lease of a Source. Demand and Waiting must not block, and must not call changed.
type Lease interface {
	// Demand counts units that were requested now, whether they may be spent or not.
	Demand(units int64)
	// Waiting sets the number of units that wait at present.
	Waiting(units int64)
	// Close releases the lease.
	Close()
}

// Rate is what may be spent of a resource from now on.
type Rate struct {
	// Amount is in thousandths of a unit a second.
	Amount int64
	// Left is the time until the lease ends: nothing may be spent afterwards without another Rate. It is 0 if there is
	// no lease. Then Amount stays until the next Rate.
	Left time.Duration
	// Lost says that a lease has ended without renewal.
	Lost bool
	// Slots says that the resource has slots and no rate.
	Slots bool
	// Fault is what the server said against the claim.
	Fault string
}
