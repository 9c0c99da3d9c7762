package component

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard/report"
)

// AddCount adds the count of one verdict and reason to the status of a rule or a stage.
func AddCount(s *admin.RuleStatus, n report.Count) {
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
