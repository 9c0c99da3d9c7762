package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/actions"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

// Bounds of the calls about one key.
const (
	maxKeyOrder = 64 << 10
	keyTimeout  = 5 * time.Second
)

// keyAction changes a key; nil only reads it.
type keyAction func(*keyChange, context.Context) error

// keyCalls are the calls of headgate ctl key.
func (r *Rules) keyCalls() []calls.Call {
	var all []calls.Call
	for action, do := range map[string]keyAction{
		"get": nil, "reset": (*keyChange).reset, "ban": (*keyChange).ban, "unban": (*keyChange).unban,
	} {
		answer := func(w http.ResponseWriter, req *http.Request) { r.answerKey(w, req, action, do) }
		all = append(all, calls.Call{
			Pattern: "POST /api/v1/key/" + action, Scope: config.ScopeAdminister,
			Handler: calls.OwnSiteOrProgram(calls.Parameters(r.log, answer)),
		})
	}
	return all
}

// keyChange is one call about a key.
type keyChange struct {
	*Rules

	order  *admin.KeyOrder
	name   guard.KeyName
	length time.Duration // of a ban
	before *guard.KeyState
	after  string // what the record says
	undo   string // the command that undoes the change; "" without one
}

// answerKey reads a key, and changes it with do. do is nil for a call that only reads.
func (r *Rules) answerKey(w http.ResponseWriter, req *http.Request, action string, do keyAction) {
	order, failure := keyOrderOf(req, action)
	if failure != nil {
		calls.Fail(r.log, w, failure)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), keyTimeout)
	defer cancel()
	c := &keyChange{Rules: r, order: order, name: nameOf(order)}
	c.length, _ = rule.ParseDuration(order.For)
	var err error
	if c.before, err = r.guard.Peek(ctx, c.name); err != nil {
		calls.Fail(r.log, w, failureOfKey(err, false))
		return
	}
	if do != nil && !order.DryRun {
		record := objects.Record(req, "keys/"+c.before.Rule+" "+r.banned(c.before.ID), order.Reason)
		record.Action, record.Before = action, keyText(c.before)
		err = do(c, ctx)
		if record.After = c.after; err != nil {
			record.After = "not known"
		}
		objects.Done(r.host, &record, c.undo, err)
	}
	if err != nil {
		calls.Fail(r.log, w, failureOfKey(err, true))
		return
	}
	answer := r.keyAnswer(c.before, order.DryRun)
	answer.Undo = c.undo
	calls.WriteJSON(r.log, w, answer)
}

// command gives a command about the key.
func (c *keyChange) command(action string, flags ...string) string {
	words := []string{"headgate", "ctl", "key", action}
	if c.order.Domain != "" {
		words = append(words, "--domain="+c.order.Domain)
		for _, e := range c.order.Entries {
			words = append(words, e.Name+"="+e.Value)
		}
	} else {
		words = append(append(words, c.name.Rule), c.name.Values...)
	}
	return actions.Command(append(words, flags...)...)
}

// banAgain gives the command that bans the key again until the end of a ban; "" without a ban.
func (c *keyChange) banAgain(was *guard.BanEntry) string {
	if was == nil {
		return ""
	}
	flags := []string{actions.Left(was.Until, c.before.At.Time())}
	if was.Reason != "" {
		flags = append(flags, "--reason="+was.Reason)
	}
	return c.command("ban", flags...)
}

func (c *keyChange) reset(ctx context.Context) error {
	before, err := c.guard.Reset(ctx, c.name)
	if before != nil {
		c.before = before
	}
	c.after = "0 units"
	return err //nolint:wrapcheck // because failureOfKey says what failed.
}

func (c *keyChange) ban(ctx context.Context) error {
	entry, err := c.guard.Ban(ctx, c.name, c.length, c.order.Reason)
	if c.undo = c.banAgain(c.before.Ban); c.undo == "" {
		c.undo = c.command("unban")
	}
	if c.before.Ban = entry; entry != nil {
		c.after = "banned until " + entry.Until.Format(time.RFC3339)
	}
	return err //nolint:wrapcheck // because failureOfKey says what failed.
}

func (c *keyChange) unban(ctx context.Context) error {
	_, err := c.guard.Unban(ctx, c.name)
	c.after, c.undo = "not banned", c.banAgain(c.before.Ban)
	return err //nolint:wrapcheck // because failureOfKey says what failed.
}

// keyOrderOf reads and checks the body of a call.
func keyOrderOf(req *http.Request, action string) (*admin.KeyOrder, *calls.Failure) {
	text, err := io.ReadAll(io.LimitReader(req.Body, maxKeyOrder+1))
	if err != nil || len(text) > maxKeyOrder {
		return nil, calls.BadRequest(fmt.Sprintf("the body cannot be read, or has more than %d bytes: write a shorter one", maxKeyOrder))
	}
	order := new(admin.KeyOrder)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(order); err != nil || decoder.More() {
		return nil, calls.BadRequest(`the body is not a key (` + errorText(err) + `): write JSON like {"rule": "api", "values": ["acme"]}`)
	}
	if f := calls.CheckReason(order.Reason); f != nil {
		return nil, f
	}
	length, err := rule.ParseDuration(order.For)
	switch {
	case action == "ban" && (err != nil || length < time.Second || length > limit.MaxPer):
		return nil, calls.BadRequest("for is the length of a ban: write a time from 1s to 367d, like 1h")
	case action != "ban" && order.For != "":
		return nil, calls.BadRequest("for is only for a ban: leave it out")
	case order.Rule == "" && order.Domain == "":
		return nil, calls.BadRequest("the key has neither a rule nor a domain: write rule and values, or domain and entries")
	}
	return order, nil
}

func errorText(err error) string {
	if err == nil {
		return "a second value follows"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

func nameOf(order *admin.KeyOrder) guard.KeyName {
	const missing = "(missing)"
	name := guard.KeyName{Rule: order.Rule, Domain: order.Domain}
	for _, value := range order.Values {
		if value == nil {
			name.Values = append(name.Values, missing)
		} else {
			name.Values = append(name.Values, *value)
		}
	}
	for _, e := range order.Entries {
		name.Entries = append(name.Entries, headgate.DescriptorEntry(e))
	}
	return name
}

// keyAnswer gives a key as a document.
func (r *Rules) keyAnswer(s *guard.KeyState, dry bool) *admin.Key {
	shared := r.store.Shared()
	k := &admin.Key{
		ID: s.ID, Rule: s.Rule, Key: s.Key, Mode: s.Mode.String(), Override: s.Override, LimitsFrom: s.Stated,
		Limits: []admin.KeyLimit{}, Ban: s.Ban, EarlierBans: s.EarlierBans,
		Now: s.At.Time(), Shared: shared, Ahead: shared && r.store.State().Ahead != nil, DryRun: dry,
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		k.Limits = append(k.Limits, admin.KeyLimit{
			Name: l.Policy, Limit: l.Limit.String(), Algorithm: l.Algorithm.String(), Used: l.Used, Remaining: l.Remaining,
			NextSeconds: l.Next.Seconds(), FullSeconds: l.Full.Seconds(), Never: l.Never,
		})
	}
	if s.InFlight != nil {
		k.InFlight = &admin.KeySlots{Used: s.InFlight.Used, Limit: s.InFlight.Limit}
	}
	return k
}

// keyText says in a record what was used.
func keyText(s *guard.KeyState) string {
	all := make([]string, 0, len(s.Limits)+1)
	for i := range s.Limits {
		all = append(all, fmt.Sprintf("%s: %s", s.Limits[i].Limit, field.Counted(s.Limits[i].Used, "unit")))
	}
	if s.Ban != nil {
		all = append(all, "banned until "+s.Ban.Until.Format(time.RFC3339))
	}
	return strings.Join(all, ", ")
}

func failureOfKey(err error, written bool) *calls.Failure {
	if fault := new(guard.KeyNameError); errors.As(err, &fault) {
		text := strings.TrimPrefix(err.Error(), "guard: ")
		if fault.Unknown {
			return calls.Failed(admin.Failure{Code: admin.CodeNotFound, Error: text}, http.StatusNotFound)
		}
		return calls.BadRequest(text)
	}
	f := calls.Unavailable(err)
	if written {
		f.Error += ": the change may have been made: look at the key, and repeat the command"
	}
	return f
}
