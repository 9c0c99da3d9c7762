package config

import (
	"net/http"

	"github.com/headgate/headgate/guard"
)

// action is what happens to a request over the limit.
type action string

// laterFieldsTable are the fields of the actions that are planned.
var laterFieldsTable = [...]struct{ field, action string }{
	{"max_wait", "delay"}, {"max_waiters", "delay"}, {"location", "redirect"}, {"header", "degrade"}, {"value", "degrade"},
}

// exceed reads what happens on excess.
func (s *section) exceed(r *guard.Rule) {
	exceed := s.sub("on_exceed", "{action: reject, status: 429}")
	reject := action("reject")
	oneOf(exceed, "action", &reject, []choice[action]{
		{word: "reject", value: "reject"},
		{word: "delay", instead: "use reject"},
		{word: "redirect", instead: "use reject"},
		{word: "degrade", instead: "use reject"},
	})
	status := int64(http.StatusTooManyRequests)
	exceed.number("status", &status, 400, 599)
	for _, planned := range laterFieldsTable {
		exceed.later(planned.field, "leave it out: it belongs to action "+planned.action)
	}
	exceed.end()
	r.Exceed.Status = int(status)
	s.later("ban", "leave it out, and use a second rule with a longer period")
}
