package app

import (
	"fmt"
	"runtime"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard/report"
)

// Status returns the current state of the instance.
func (i *Instance) Status() admin.Status {
	s := admin.Status{
		Version: i.options.Version, Commit: i.options.Commit, Go: runtime.Version(),
		State: "serving", Started: i.started.UTC(), UptimeSeconds: int64(time.Since(i.started).Seconds()), Reload: i.reloadStatus(),
	}
	if i.draining.Load() {
		s.State = "draining"
	}
	for _, p := range i.components {
		p.Status(&s)
	}
	return s
}

func (r *rules) requestStatus() admin.RequestStatus {
	t := &r.report.Traffic
	s := admin.RequestStatus{
		InFlight: t.InFlight.Load(), Waiting: t.Waiting.Load(), NoRule: r.report.Unmatched(),
		ByCode: map[string]uint64{}, UpstreamErrors: map[string]uint64{}, ByPath: map[string]uint64{},
	}
	for _, class := range report.CodeClasses() {
		s.ByCode[class.String()] = t.Answers(class)
	}
	for _, kind := range report.UpstreamErrors() {
		s.UpstreamErrors[kind.String()] = t.UpstreamFailures(kind)
	}
	for _, path := range report.Paths() {
		if n := t.ServedBy(path); n > 0 {
			s.ByPath[path.String()] = n
		}
	}
	return s
}

func (r *rules) ruleStatus() []admin.RuleStatus {
	all := []admin.RuleStatus{}
	for _, counted := range r.report.Rules() {
		rule := counted.Rule
		s := admin.RuleStatus{
			Name: rule.Name, Mode: rule.Mode.String(), Algorithm: report.AlgorithmOf(rule), Reasons: map[string]uint64{},
		}
		for _, policy := range rule.Policies {
			s.Limits = append(s.Limits, policy.Limit.String())
		}
		if rule.Quota != "" {
			s.Limits = append(s.Limits, "quota "+rule.Quota)
		}
		if rule.Lease.Resource != "" {
			s.Limits = append(s.Limits, "lease "+rule.Lease.Resource)
		}
		if rule.InFlight > 0 {
			s.Limits = append(s.Limits, fmt.Sprintf("%d/%d in flight", r.guard.InFlight(rule.Name), rule.InFlight))
		}
		for _, n := range counted.Counts {
			addCount(&s, n)
		}
		all = append(all, s)
	}
	return all
}

// addCount adds the count of one verdict and reason.
func addCount(s *admin.RuleStatus, n report.Count) {
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

func (r *rules) storeStatus() admin.StoreStatus {
	stats := r.memoryStats()
	s := admin.StoreStatus{
		Kind: r.config.Load().Store, Places: stats.Places, PlacesUsed: stats.Used,
		BlockBytes: stats.BlockBytes, BlockUsedBytes: stats.BlockBytesLent,
		Evicted: stats.Evicted, Refused: stats.Refused,
	}
	addShared(&s, r.store.State())
	s.ClockErrors = r.report.ClockErrors()
	return s
}
