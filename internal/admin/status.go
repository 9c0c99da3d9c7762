package admin

import "time"

// Status is what /api/v1/status tells. Programs read it: fields are added, and
// none is renamed.
type Status struct {
	Version       string    `json:"version"`
	Commit        string    `json:"commit"`
	Go            string    `json:"go"`
	State         string    `json:"state"` // serving or draining
	Started       time.Time `json:"started"`
	UptimeSeconds int64     `json:"uptime_seconds"`
	Listen        Addresses `json:"listen"`
	Upstream      string    `json:"upstream"`

	Requests RequestStatus `json:"requests"`
	Rules    []RuleStatus  `json:"rules"`
	Store    StoreStatus   `json:"store"`

	FairShare *FairShareStatus `json:"fair_share,omitempty"`
	Reload    ReloadStatus     `json:"reload"`
}

// Addresses are what an Instance listens on; "" where it does not.
type Addresses struct {
	Proxy  string `json:"proxy"`
	Admin  string `json:"admin,omitempty"`
	Health string `json:"health,omitempty"`
}

// RequestStatus is what the proxy served.
type RequestStatus struct {
	InFlight int64  `json:"in_flight"`
	Waiting  int64  `json:"waiting"`
	NoRule   uint64 `json:"no_rule"`
	// ByCode counts answers by the class of their status, and "canceled".
	ByCode         map[string]uint64 `json:"by_code"`
	UpstreamErrors map[string]uint64 `json:"upstream_errors"`
}

// RuleStatus is what a rule decided.
type RuleStatus struct {
	Name      string   `json:"name"`
	Mode      string   `json:"mode"`
	Algorithm string   `json:"algorithm"`
	Limits    []string `json:"limits"`
	Allowed   uint64   `json:"allowed"`
	Waited    uint64   `json:"waited"`
	Refused   uint64   `json:"refused"`
	// Reasons counts decisions by reason; those of refusals are why.
	Reasons map[string]uint64 `json:"reasons"`
}

// StoreStatus is what the store holds; beside a shared store the places and blocks are
// of what falls back to this process' memory.
type StoreStatus struct {
	Kind           string `json:"kind"`
	Places         int64  `json:"places"`
	PlacesUsed     int64  `json:"places_used"`
	BlockBytes     int64  `json:"block_bytes"`
	BlockUsedBytes int64  `json:"block_used_bytes"`
	Evicted        uint64 `json:"evicted"`
	Refused        uint64 `json:"refused"`
	// Away tells that a server of a shared store is left alone after failures.
	Away  bool         `json:"away,omitempty"`
	Nodes []NodeStatus `json:"nodes,omitempty"`
	Ahead *AheadStatus `json:"ahead,omitempty"`
}

// NodeStatus is what this process has had to do with one server of a shared store.
type NodeStatus struct {
	Address string `json:"address"`
	// State is closed while the server is asked, open while it is left alone after
	// failures, and half_open while it is probed.
	State     string `json:"state"`
	Calls     uint64 `json:"calls"`
	Decisions uint64 `json:"decisions"`
	Failures  uint64 `json:"failures"`
	GivenUp   uint64 `json:"given_up"`
}

// AheadStatus counts units that were taken ahead, and refusals from memory.
type AheadStatus struct {
	Granted         uint64 `json:"granted"`
	Spent           uint64 `json:"spent"`
	Expired         uint64 `json:"expired"`
	DeniedFromCache uint64 `json:"denied_from_cache"`
}

// FairShareStatus is fair share in short.
type FairShareStatus struct {
	Mode         string  `json:"mode"`
	Capacity     int64   `json:"capacity"`
	CycleSeconds float64 `json:"cycle_seconds"`
	Clients      int     `json:"clients"`
	LastAdmitted int64   `json:"last_admitted"`
	LastCapacity int64   `json:"last_capacity"`
	// Allowed and Refused count requests; Reasons counts them by reason.
	Allowed uint64            `json:"allowed"`
	Refused uint64            `json:"refused"`
	Reasons map[string]uint64 `json:"reasons"`
}
