package admin

import "time"

// Status is the answer of /api/v1/status.
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
	// Modes are the modes that were set at run time. They end with the process.
	Modes []ModeOverride `json:"modes,omitempty"`
	// Trials are the trials in progress.
	Trials []Trial `json:"trials,omitempty"`
	// KeyLimits are the first limits that single keys have at run time, without the keys. KeyLimitsTotal is the number of all.
	KeyLimits      []KeyLimited `json:"key_limits,omitempty"`
	KeyLimitsTotal int          `json:"key_limits_total,omitempty"`
	Store          StoreStatus  `json:"store"`
	// Domains are the trees of limits of headgate server.
	Domains []DomainStatus `json:"domains,omitempty"`

	// Source is the place of further rules, plans and customers.
	Source    *SourceStatus    `json:"source,omitempty"`
	FairShare *FairShareStatus `json:"fair_share,omitempty"`
	Throttle  *ThrottleStatus  `json:"throttle,omitempty"`
	Metering  *MeteringStatus  `json:"metering,omitempty"`
	Reload    ReloadStatus     `json:"reload"`
	// Receivers get the counters of Envoy's rate limit service as statsd lines.
	Receivers []ReceiverStatus `json:"receivers,omitempty"`
}

// ReceiverStatus is the state of a receiver of statsd lines.
type ReceiverStatus struct {
	Network string `json:"network"` // tcp or udp
	Address string `json:"address"`
	// DroppedLines could not be sent. Error says why the last send failed; "" if it succeeded.
	DroppedLines uint64 `json:"dropped_lines"`
	Error        string `json:"error,omitempty"`
}

// Addresses are the addresses that an instance listens on. "" means that a listener is off.
type Addresses struct {
	Proxy string `json:"proxy"`
	// GRPC, HTTP and RESP are the listeners of headgate server.
	GRPC   string `json:"grpc,omitempty"`
	HTTP   string `json:"http,omitempty"`
	RESP   string `json:"resp,omitempty"`
	Admin  string `json:"admin,omitempty"`
	Health string `json:"health,omitempty"`
}

// RequestStatus counts the requests of the proxy.
type RequestStatus struct {
	InFlight int64  `json:"in_flight"`
	Waiting  int64  `json:"waiting"`
	NoRule   uint64 `json:"no_rule"`
	// ByCode counts answers by the class of their status, and "canceled". Answers divides them by their origin.
	ByCode         map[string]uint64 `json:"by_code"`
	Answers        AnswerStatus      `json:"answers"`
	UpstreamErrors map[string]uint64 `json:"upstream_errors"`
	// ByPath counts served requests by the name of their report.Path, without the counts of 0.
	ByPath map[string]uint64 `json:"by_path"`
}

// AnswerStatus divides the answers of the proxy into its own and those of the service. All counts together are the number of
// requests.
type AnswerStatus struct {
	// Headgate counts answers that Headgate wrote itself by class, and as canceled the requests whose client left before they
	// reached the service.
	Headgate map[string]uint64 `json:"headgate"`
	// Service counts the service's own answers by class, as canceled the requests whose client left before the service answered,
	// and as failed those that the service did not answer or whose answer it broke off. Headgate answered those of the first kind
	// with 502 or 504.
	Service map[string]uint64 `json:"service"`
}

// RuleStatus counts the decisions of a rule.
type RuleStatus struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	// TrialOf is the rule for which this one tries other limits; "" is no trial.
	TrialOf   string   `json:"trial_of,omitempty"`
	Algorithm string   `json:"algorithm"`
	Limits    []string `json:"limits"`
	// Ended lists the first overrides that have ended and have no effect, with their ends: gold-* at 2026-12-31T12:00:00Z.
	Ended   []string `json:"ended_overrides,omitempty"`
	Allowed uint64   `json:"allowed"`
	Waited  uint64   `json:"waited"`
	Refused uint64   `json:"refused"`
	// Reasons counts decisions by reason.
	Reasons map[string]uint64 `json:"reasons"`
}

// DomainStatus describes the tree of one domain.
type DomainStatus struct {
	Name string `json:"name"`
	// Limits is the number of descriptors with a limit, and Fallback what decides without the store.
	Limits   int    `json:"limits"`
	Fallback string `json:"fallback"`
}

// StoreStatus is the state of the store. Beside a shared store, the places and blocks
// belong to the memory store of the fallback.
type StoreStatus struct {
	Kind           string `json:"kind"`
	Places         int64  `json:"places"`
	PlacesUsed     int64  `json:"places_used"`
	BlockBytes     int64  `json:"block_bytes"`
	BlockUsedBytes int64  `json:"block_used_bytes"`
	Evicted        uint64 `json:"evicted"`
	Refused        uint64 `json:"refused"`
	// Away reports that at least one server of a shared store is not used, after failures.
	Away bool `json:"away,omitempty"`
	// ClockErrors counts requests whose limits with a calendar period were decided by fallbacks, because the clock of the
	// store is outside of their windows.
	ClockErrors uint64       `json:"clock_errors,omitempty"`
	Nodes       []NodeStatus `json:"nodes,omitempty"`
	Ahead       *AheadStatus `json:"ahead,omitempty"`
}

// NodeStatus counts this process's calls to one server of a shared store.
type NodeStatus struct {
	Address string `json:"address"`
	// State is the state of the circuit breaker: closed (the server is used), open (the
	// server is not used after failures), or half_open (the server is probed).
	State     string `json:"state"`
	Calls     uint64 `json:"calls"`
	Decisions uint64 `json:"decisions"`
	Failures  uint64 `json:"failures"`
	GivenUp   uint64 `json:"given_up"`
	// LastError is the text of the last failure, at LastErrorAt, and has at most 300 bytes. It stays when later calls succeed.
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// ClockAheadSeconds is how far the server's clock is ahead of this machine's clock, with an error of at most
	// ClockErrorSeconds. Both are absent while the server's clock is not known.
	ClockAheadSeconds float64 `json:"clock_ahead_seconds,omitempty"`
	ClockErrorSeconds float64 `json:"clock_error_seconds,omitempty"`
}

// AheadStatus counts prefetched units, and refusals decided from memory.
type AheadStatus struct {
	Granted         uint64 `json:"granted"`
	Spent           uint64 `json:"spent"`
	Expired         uint64 `json:"expired"`
	DeniedFromCache uint64 `json:"denied_from_cache"`
}

// ThrottleStatus is the state of the throttle. In mode shadow its figures are estimates.
type ThrottleStatus struct {
	Mode        string `json:"mode"`
	Concurrency int    `json:"concurrency,omitempty"`
	// AdvisedConcurrency is what auto_concurrency has found. 0 is unknown.
	AdvisedConcurrency int     `json:"advised_concurrency,omitempty"`
	CPUInFlightSeconds float64 `json:"cpu_in_flight_seconds,omitempty"`
	// Hung says that the service answers nothing, and gets one request at a time.
	Hung bool `json:"hung,omitempty"`
	// InFlight counts requests, and WorkInFlightSeconds is their predicted work.
	InFlight            int     `json:"in_flight"`
	WorkInFlightSeconds float64 `json:"work_in_flight_seconds"`
	// Queued counts requests by criticality.
	Queued            map[string]int `json:"queued"`
	QueuedWorkSeconds float64        `json:"queued_work_seconds"`
	// DrainRate is the work that ends per second while requests are queued. 0 is unknown.
	DrainRate float64 `json:"drain_rate"`
	Tenants   int     `json:"tenants"`
	// Waited counts requests that went to the service after a wait; WaitSeconds is the sum of
	// their waits. Refused counts refusals by reason.
	Waited      uint64            `json:"waited"`
	WaitSeconds float64           `json:"wait_seconds"`
	Refused     map[string]uint64 `json:"refused"`
	// RefusedByClass counts them by criticality.
	RefusedByClass map[string]uint64 `json:"refused_by_class"`
	// PredictedWorkSeconds and WorkSeconds are sums over the answered requests.
	PredictedWorkSeconds float64 `json:"predicted_work_seconds"`
	WorkSeconds          float64 `json:"work_seconds"`
}

// FairShareStatus is a summary of fair share.
type FairShareStatus struct {
	Mode         string  `json:"mode"`
	Capacity     int64   `json:"capacity"`
	CycleSeconds float64 `json:"cycle_seconds"`
	Clients      int     `json:"clients"`
	LastAdmitted int64   `json:"last_admitted"`
	LastCapacity int64   `json:"last_capacity"`
	// Allowed and Refused count requests. Reasons counts them by reason.
	Allowed uint64            `json:"allowed"`
	Refused uint64            `json:"refused"`
	Reasons map[string]uint64 `json:"reasons"`
}
