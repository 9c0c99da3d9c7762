package throttler

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/throttle"
)

var _ guard.PreviewStage = (*Stage)(nil)

// Preview implements guard.PreviewStage.
func (s *Stage) Preview(p *guard.Pass) (d headgate.Decision, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req, c, now := p.Request, &s.config, headgate.Instant(p.Now(s.clock))
	now = max(now, s.latest)
	trusted := c.Identity != nil && c.Identity.Trusts(req.IP)
	var found []int
	r := throttle.Request{
		Class: s.classOf(req, trusted, &found), Deadline: now.Add(c.timeLeft(p, trusted, callTimeout(req))),
		Route: string(appendRoute(nil, req.Method, req.Path)),
	}
	if s.tells {
		name, _ := c.Tenant.AppendClient(nil, req)
		r.Tenant = string(name)
	}
	v, wait := s.throttler.Preview(now, &r)
	return decision(v, &r), wait
}

// ClassOf returns the class that the stage gives a request, and the name of its tenant.
func (s *Stage) ClassOf(req *headgate.Request) (class Class, tenant string) {
	trusted := s.config.Identity != nil && s.config.Identity.Trusts(req.IP)
	var found []int
	if s.tells {
		name, _ := s.config.Tenant.AppendClient(nil, req)
		tenant = string(name)
	}
	return s.classOf(req, trusted, &found), tenant
}
