package admin

// Answers of /api/v1/leases with status 404: without a server of leases, and for a resource without claims.
const (
	NoLeases = "this instance gives no capacity leases: use the admin.listen of a headgate server with the section lease"
	NoClaim  = "no holder claims this resource now"
)

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
	// Limits say how the limits of headgate ctl limit are read, for a root with lease.limits.
	Limits *LeaseLimits `json:"limits,omitempty"`
	// Resources are sorted by name. With the parameter resource, there is only that one, with its holders.
	Resources []LeasedResource `json:"resources"`
}

// LeaseLimits is the state of the limits that win over the capacities of the file.
type LeaseLimits struct {
	// Fault says why etcd cannot be read: the last limits stay.
	Fault string `json:"fault,omitempty"`
	// InForce are the resources with such a capacity.
	InForce int `json:"in_force"`
	// Refused are at most 100 of the limits that have no effect, with the reason.
	Refused map[string]string `json:"refused,omitempty"`
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
	// Servers are the servers below, the largest first, and MoreServers the number of those that are not listed.
	Servers     []LeaseHolder `json:"servers,omitempty"`
	MoreServers int           `json:"more_servers,omitempty"`
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
