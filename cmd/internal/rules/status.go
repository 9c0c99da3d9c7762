package rules

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
)

func (r *Rules) requestStatus() admin.RequestStatus {
	t := &r.report.Traffic
	s := admin.RequestStatus{
		InFlight: t.InFlight.Load(), Waiting: t.Waiting.Load(), NoRule: r.report.Unmatched(),
		ByCode: map[string]uint64{}, Answers: answerStatus(t), UpstreamErrors: map[string]uint64{}, ByPath: map[string]uint64{},
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

func answerStatus(t *report.Traffic) admin.AnswerStatus {
	s := admin.AnswerStatus{Headgate: map[string]uint64{}, Service: map[string]uint64{"failed": t.ServiceFailures()}}
	for _, class := range report.CodeClasses() {
		s.Headgate[class.String()] = t.AnswersFrom(report.OriginHeadgate, class)
		s.Service[class.String()] = t.AnswersFrom(report.OriginService, class)
	}
	return s
}

func (r *Rules) ruleStatus() []admin.RuleStatus {
	all := []admin.RuleStatus{}
	for _, counted := range r.report.Rules() {
		rule := counted.Rule
		s := admin.RuleStatus{
			Name: rule.Name, Mode: ModeText(rule), TrialOf: rule.TrialOf, Algorithm: report.AlgorithmOf(rule), Reasons: map[string]uint64{},
		}
		s.Limits = LimitTexts(rule)
		s.Ended = config.EndedOverrides(rule, time.Now())
		if rule.InFlight > 0 {
			s.Limits = append(s.Limits, fmt.Sprintf("%d/%d in flight", r.guard.InFlight(rule.Name), rule.InFlight))
		}
		for _, n := range counted.Counts {
			component.AddCount(&s, n)
		}
		all = append(all, s)
	}
	return all
}

func (r *Rules) storeStatus() admin.StoreStatus {
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

// LimitTexts gives the limits of a rule, without that of requests in flight.
func LimitTexts(r *guard.Rule) (texts []string) {
	for i := range r.Policies {
		texts = append(texts, r.Policies[i].Limit.String())
	}
	if r.Quota != "" {
		texts = append(texts, "quota "+r.Quota)
	}
	if r.Lease.Resource != "" {
		texts = append(texts, "lease "+r.Lease.Resource)
	}
	return texts
}

// ModeText gives the mode of a rule, and the part of the keys that it applies to.
func ModeText(r *guard.Rule) string {
	if r.Switch != nil && r.Switch.Percent > 0 {
		return fmt.Sprintf("%s %d%%", r.Mode, r.Switch.Percent)
	}
	return r.Mode.String()
}
