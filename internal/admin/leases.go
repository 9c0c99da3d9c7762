package admin

// NoLeases is the answer of /api/v1/leases without the section lease.
const NoLeases = "this instance gives no capacity leases: its configuration has no section lease"

// Leases is the answer of /api/v1/leases. Amounts are units a second, or slots.
type Leases struct {
	// Parent is the address of the parent with an open stream. Child says that there is a parent.
	Parent string `json:"parent,omitempty"`
	Child  bool   `json:"child"`
	// Group is the group of the server, or "". Master is the address of the master of the group, or "" if none is known. Mine
	// says that this server gives leases: it is the master, or alone. Otherwise there are no resources.
	Group  string `json:"group,omitempty"`
	Master string `json:"master,omitempty"`
	Mine   bool   `json:"mine"`
	// Resources are sorted by name. With the parameter resource, there is only that one, with its holders.
	Resources []LeasedResource `json:"resources"`
}

// LeasedResource is what is out of one resource.
type LeasedResource struct {
	Name string `json:"name"`
	// Unit is rate or in_flight.
	Unit     string  `json:"unit"`
	Capacity float64 `json:"capacity"`
	Wants    float64 `json:"wants"`
	Has      float64 `json:"has"`
	// Ledger is what may be out, and Unknown what holders may have that have not reported since the start.
	Ledger  float64 `json:"ledger"`
	Unknown float64 `json:"unknown"`
	Claims  int     `json:"claims"`
	// EndSeconds is the time until the lease of the parent ends.
	EndSeconds float64       `json:"end_seconds,omitempty"`
	Holders    []LeaseHolder `json:"holders,omitempty"`
}

// LeaseHolder is one claim.
type LeaseHolder struct {
	// Holder is the beginning of the holder's name, which is a secret.
	Holder string  `json:"holder"`
	Caller string  `json:"caller,omitempty"`
	Wants  float64 `json:"wants"`
	Has    float64 `json:"has"`
	Ledger float64 `json:"ledger"`
	// Below is the number of holders below a server.
	Below      int64   `json:"below,omitempty"`
	EndSeconds float64 `json:"end_seconds"`
}
