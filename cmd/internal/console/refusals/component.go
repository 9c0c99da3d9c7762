package refusals

import (
	"encoding/hex"
	"hash/maphash"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// Bounds of an answer.
const (
	defaultList = 50
	maxList     = 1000
	// maxSought bounds a parameter of the call.
	maxSought = 256
)

// Component keeps the last refusals, and lists them.
type Component struct {
	component.Defaults

	log    *slog.Logger
	config func() *config.Config
	name   func() string
	report *report.Report
	ring   *ring
}

// New makes the component. name names the instance, and current is the configuration in effect.
func New(log *slog.Logger, name func() string, current func() *config.Config, counts *report.Report) *Component {
	c := &Component{log: log, config: current, name: name, report: counts, ring: newRing(time.Now)}
	c.follow(current())
	counts.SetOnRefusal(c.ring.observe)
	return c
}

// follow keeps keys as log.keys says.
func (c *Component) follow(next *config.Config) {
	c.ring.setKeys(next.Log.Keys != config.LogKeys(report.KeysOff.String()))
}

// Reload implements component.Component.
func (c *Component) Reload(next *config.Config) (component.Change, error) {
	return component.Change{Commit: func() { c.follow(next) }}, nil
}

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	return []calls.Call{{
		Pattern: "GET /api/v1/refusals", Scope: config.ScopeRead,
		Handler: calls.OwnSite(calls.Parameters(c.log, c.list, "request_id", "rule", "key", "limit")),
	}}
}

// sought is what a call looks for; the zero sought is everything.
type sought struct {
	id       uint64
	decision guard.DecisionID
	byID     bool
	rule     string
	key      string
}

// list answers with the refusals that a call looks for.
func (c *Component) list(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	n, failure := calls.PageSize(query.Get("limit"), defaultList, maxList)
	for _, name := range []string{"request_id", "rule", "key"} {
		if len(query.Get(name)) > maxSought {
			failure = calls.BadRequest(name + " has more than " + strconv.Itoa(maxSought) + " bytes: write a shorter one")
		}
	}
	if failure != nil {
		calls.Fail(c.log, w, failure)
		return
	}
	names := c.report.KeyNames()
	if c.config().Log.Keys == config.KeysByReader && access.MayAdminister(req.Context()) {
		names = rule.PlainKeyNames()
	}
	s := sought{rule: query.Get("rule"), key: query.Get("key")}
	if id := query.Get("request_id"); id != "" {
		s.byID, s.id, s.decision = true, maphash.String(c.ring.seed, id), decisionOf(id)
	}
	answer := admin.Refusals{Instance: c.name(), Now: time.Now().UTC(), Refusals: []admin.Refusal{}, Skipped: c.ring.skips.Load()}
	c.ring.newest(func(p *record) bool {
		at := time.Unix(0, p.at).UTC()
		answer.Since = &at
		if found, matches := c.found(p, &s, names); matches && len(answer.Refusals) < n {
			answer.Refusals = append(answer.Refusals, found)
		}
		return true
	})
	calls.WriteJSON(c.log, w, answer)
}

// decisionOf reads the ID of a decision, with or without the name of an instance before it; 0 for another text.
func decisionOf(text string) guard.DecisionID {
	const digits = 16
	text = text[strings.LastIndexByte(text, '/')+1:]
	number, err := hex.DecodeString(text)
	if err != nil || len(text) != digits {
		return 0
	}
	var id guard.DecisionID
	for _, b := range number {
		id = id<<8 | guard.DecisionID(b)
	}
	return id
}

// found describes a refusal, if the call looks for it.
func (c *Component) found(p *record, s *sought, names *rule.KeyNames) (admin.Refusal, bool) {
	switch {
	case s.byID && (p.id == 0 || p.id != s.id) && (s.decision == 0 || p.decision != s.decision):
		return admin.Refusal{}, false
	case s.rule != "" && p.rule != s.rule:
		return admin.Refusal{}, false
	}
	key := p.keyText(names)
	if s.key != "" && !strings.Contains(key, s.key) {
		return admin.Refusal{}, false
	}
	return admin.Refusal{
		At: time.Unix(0, p.at).UTC(), Instance: c.name(), RequestID: p.shown(textID), Decision: string(p.decision.AppendTo(nil, "")),
		Method: p.shown(textMethod), Path: p.shown(textPath), Host: p.shown(textHost), Rule: p.rule, Reason: p.reason.String(),
		Shadow: p.shadow, Key: key, Remaining: p.remaining, RetrySeconds: p.retry.Seconds(),
	}, true
}

// shown returns a text for people, who may read it on a terminal or in a page: its invisible characters are escaped.
func (p *record) shown(n int) string {
	text := p.textOf(n)
	if p.long&(1<<n) != 0 {
		text = strings.ToValidUTF8(text, "") + "..."
	}
	return terminal.Printable(text)
}
