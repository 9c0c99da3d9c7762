package proxy

import (
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// loggedPart is a part of keys whose value each line of the access log has.
type loggedPart struct {
	part  rule.Part
	text  string // of the part
	names *rule.KeyNames
}

// add adds parts in the form of names.
func (a *access) add(parts []rule.Part, names *rule.KeyNames) {
	for _, p := range parts {
		a.parts = append(a.parts, loggedPart{p, p.String(), names})
	}
}

// identified notes what the log shows of the client of a request.
func (e *entry) identified(req *headgate.Request) {
	e.line.UserIP, e.line.Region = req.UserIP, req.Region
	e.values, e.texts = e.values[:0], slices.Grow(e.texts[:0], 64*len(e.access.parts))
	for i := range e.access.parts {
		p := &e.access.parts[i]
		from := len(e.texts)
		var present bool
		e.texts, present = p.names.AppendPart(e.texts, p.part, req)
		e.values = append(e.values, accesslog.Part{Name: p.text, Text: e.texts[from:], Hashed: p.names.Hashes(), Absent: !present})
	}
	e.line.Identity = e.values
}

// settled notes the real cost of a request that has ended.
func (e *entry) settled(o *guard.Outcome) {
	if !e.logs() || e.rule == nil {
		return
	}
	if cost, stated := e.rule.Actual(o); stated {
		e.line.Cost = cost
	}
}
