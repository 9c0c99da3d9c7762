package httpdecide

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/guard"
)

// refuseUnsupplied answers a subrequest that a rule counts by a part that no subrequest has. The status is 500. Gateways that are set to
// admit requests without an answer admit them at 500, and the limit would be absent without a word. So with refuse=403, the answer is a
// refusal with 500 in StatusField.
func (s *Service) refuseUnsupplied(w http.ResponseWriter, lacks *guard.UnsuppliedError) {
	s.stats.faults.Add(1)
	refuse(w, http.StatusInternalServerError, lacks.Error())
	if since, log := s.unsupplied.Event(time.Now()); log {
		s.log.Warn("refused a subrequest: a rule counts by a part that it does not have", "error", lacks, "since_last_line", since)
	}
}
