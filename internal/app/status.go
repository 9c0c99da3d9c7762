package app

import (
	"runtime"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/report"
)

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

// Status gives the instance's state now.
func (i *Instance) Status() Status {
	s := Status{
		Version: i.options.Version, Commit: i.options.Commit, Go: runtime.Version(),
		State: "serving", Started: i.started.UTC(), UptimeSeconds: int64(time.Since(i.started).Seconds()),
		Listen: i.addresses, Upstream: i.config.Load().Proxy.Upstream.Redacted(),
		Requests: i.requestStatus(), Rules: i.ruleStatus(), Store: i.storeStatus(), FairShare: i.fairShareStatus(),
		Reload: i.reloadStatus(),
	}
	if i.draining.Load() {
		s.State = "draining"
	}
	return s
}

func (i *Instance) requestStatus() RequestStatus {
	t := &i.report.Traffic
	s := RequestStatus{
		InFlight: t.InFlight.Load(), Waiting: t.Waiting.Load(), NoRule: i.report.Unmatched(),
		ByCode: map[string]uint64{}, UpstreamErrors: map[string]uint64{},
	}
	for _, class := range report.CodeClasses() {
		s.ByCode[class.String()] = t.Answers(class)
	}
	for _, kind := range report.UpstreamErrors() {
		s.UpstreamErrors[kind.String()] = t.UpstreamFailures(kind)
	}
	return s
}

func (i *Instance) ruleStatus() []RuleStatus {
	all := []RuleStatus{}
	for _, counted := range i.report.Rules() {
		rule := counted.Rule
		s := RuleStatus{
			Name: rule.Name, Mode: rule.Mode.String(), Algorithm: report.AlgorithmOf(rule), Reasons: map[string]uint64{},
		}
		for _, policy := range rule.Policies {
			s.Limits = append(s.Limits, policy.Limit.String())
		}
		for _, n := range counted.Counts {
			s.add(n)
		}
		all = append(all, s)
	}
	return all
}

func (s *RuleStatus) add(n report.Count) {
	s.Reasons[n.Reason.String()] += n.N
	switch n.Verdict {
	case headgate.Allow:
		s.Allowed += n.N
	case headgate.Wait:
		s.Waited += n.N
	default:
		s.Refused += n.N
	}
}

func (i *Instance) storeStatus() StoreStatus {
	stats := i.memoryStats()
	s := StoreStatus{
		Kind: i.config.Load().Store, Places: stats.Places, PlacesUsed: stats.Used,
		BlockBytes: stats.BlockBytes, BlockUsedBytes: stats.BlockBytesLent,
		Evicted: stats.Evicted, Refused: stats.Refused,
	}
	s.addShared(i.store.State())
	return s
}
