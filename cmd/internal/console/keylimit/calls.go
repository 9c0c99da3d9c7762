package keylimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/actions"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/rule"
)

// Bounds of a change.
const (
	maxBody  = 64 << 10
	mostTime = 31 * 24 * time.Hour
	maxValue = 1024 // as in overrides of the configuration
)

// answerList lists the limits of single keys, ?rule=NAME those of a rule.
func (c *Component) answerList(w http.ResponseWriter, r *http.Request) {
	all := list(c.set.Current(), true)
	if name := r.URL.Query().Get("rule"); name != "" {
		all = slices.DeleteFunc(all, func(l admin.KeyLimited) bool { return l.Rule != name })
	}
	calls.WriteJSON(c.host.Log, w, admin.KeyLimits{Now: c.set.Now().UTC(), Limits: all})
}

// answerChange sets or ends the limits of a value.
func (c *Component) answerChange(w http.ResponseWriter, r *http.Request) {
	order := new(admin.KeyLimitOrder)
	if f := calls.ReadJSON(w, r, maxBody, order, `{"rule": "api", "value": "acme", "limits": ["200/1s"], "for": "1h"}`); f != nil {
		calls.Fail(c.host.Log, w, f)
		return
	}
	lasts, f := check(order)
	if f == nil {
		var done *admin.KeyLimitChange
		if done, f = c.change(r, order, lasts); f == nil {
			calls.WriteJSON(c.host.Log, w, done)
			return
		}
	}
	calls.Fail(c.host.Log, w, f)
}

// check checks what does not depend on the rules.
func check(order *admin.KeyLimitOrder) (lasts time.Duration, f *calls.Failure) {
	if f := calls.CheckReason(order.Reason); f != nil {
		return 0, f
	}
	if order.End {
		if len(order.Limits) > 0 || order.Burst != 0 || order.Unlimited || order.For != "" {
			return 0, calls.BadRequest("end ends the limits of a key at once: leave out limits, burst, unlimited and for")
		}
		return 0, nil
	}
	lasts, err := rule.ParseDuration(order.For)
	switch {
	case err != nil || lasts < time.Second || lasts > mostTime:
		return 0, calls.BadRequest("for is how long the limits last: write a time from 1s to 31d, like 1h")
	case !order.Unlimited && len(order.Limits) == 0:
		return 0, calls.BadRequest("the key gets no limits: write limits like 200/1s, or unlimited")
	}
	return lasts, nil
}

// planned is a change whose rule and value are known.
type planned struct {
	name    string // of the entry
	entry   *limited
	done    admin.KeyLimitChange
	here    bool // the change is one of this instance beside a source
	logged  string
	command []string // the begin of the command that undoes the change
}

// plan finds the rule and the value of a change. The caller holds the lock of the instance.
func (c *Component) plan(r *http.Request, order *admin.KeyLimitOrder, lasts time.Duration) (*planned, *calls.Failure) {
	base := c.instance.Base()
	own, f := find(base, order.Rule)
	if f != nil {
		return nil, f
	}
	if len(order.Value) > maxValue {
		return nil, calls.BadRequest(fmt.Sprintf("value has %d bytes: write at most %d", len(order.Value), maxValue))
	}
	named, err := base.Folds.NameOverride(&own.Rule, order.Value)
	if err != nil {
		fault := new(rule.KeyError)
		if errors.As(err, &fault) {
			return nil, calls.BadRequest("the key " + fault.Problem + ": " + fault.Fix)
		}
		return nil, calls.BadRequest(err.Error())
	}
	now := c.set.Now()
	one := &limited{
		rule: own.Name, value: named.Override.Value, limits: strings.Join(order.Limits, ","), burst: order.Burst, since: now,
		until: now.Add(lasts), by: access.CallOf(r.Context()).Client().Name(), reason: order.Reason,
	}
	k := one.config()
	if k.Unlimited = order.Unlimited; !order.End {
		k.Limits = order.Limits
		if err := config.CheckKeyLimit(own, &k); err != nil {
			return nil, calls.BadRequest(err.Error())
		}
	}
	p := &planned{
		name: nameOf(own.Name, one.value), entry: one, logged: "keys/" + own.Name,
		command: []string{"headgate", "ctl", "key", "limit", own.Name, one.value},
	}
	if names := c.report.KeyNames(); names != nil {
		key, _ := (&rule.Rule{Name: own.Name, Key: own.Key[:1]}).AppendKey(nil, named.Request)
		p.logged += " " + string(names.AppendKey(nil, string(key)))
	}
	p.done = admin.KeyLimitChange{
		Rule: own.Name, Value: one.value, Parts: len(own.Key), DryRun: order.DryRun,
		Before: c.effective(base, own.Name, named, c.set.Current()), Notes: notes(own, one),
	}
	if order.End {
		p.entry = nil
		next := maps.Clone(c.set.Current())
		delete(next, p.name)
		p.done.After = c.effective(base, own.Name, named, next)
		return p, nil
	}
	p.done.After = one.texts()
	until := one.until.UTC()
	p.done.Until = &until
	return p, nil
}

// effective gives the limits of a value under some limits of the run time.
func (c *Component) effective(base *config.Config, name string, value *rule.NamedValue, all map[string]limited) []string {
	mine := map[string]limited{}
	for key, one := range all {
		if one.rule == name {
			mine[key] = one
		}
	}
	own, f := find(base.WithKeyLimits(limitsOf(mine)), name)
	if f != nil {
		return nil
	}
	limits, _ := base.LimitsOfKey(own, value, c.set.Now())
	return limits
}

// notes say what the limits do not change.
func notes(own *guard.Rule, l *limited) (all []string) {
	if l.limits != "" {
		all = append(all, "what the key has used stays counted, in each limit with the same period")
	}
	if own.Ban.For > 0 {
		all = append(all, "a ban in force stays: headgate ctl key unban ends it")
	}
	return all
}

// change makes a change in this instance, or in all instances of a source.
func (c *Component) change(r *http.Request, order *admin.KeyLimitOrder, lasts time.Duration) (*admin.KeyLimitChange, *calls.Failure) {
	c.instance.Lock()
	p, f := c.plan(r, order, lasts)
	if f != nil {
		c.instance.Unlock()
		return nil, f
	}
	to := overlay.WriterOf(c.source)
	p.here = to != nil && order.Here
	p.done.Everywhere = to != nil && !order.Here
	record := objects.Record(r, p.logged, order.Reason)
	if record.Action = "key limit"; order.End {
		record.Action = "key limit end"
	}
	if !p.done.Everywhere {
		defer c.instance.Unlock()
		return c.changeHere(p, &record)
	}
	c.instance.Unlock()
	if order.DryRun {
		return &p.done, nil
	}
	return c.changeAll(r, p, record, to)
}

// changeHere changes this instance. The caller holds its lock.
func (c *Component) changeHere(p *planned, record *source.Record) (*admin.KeyLimitChange, *calls.Failure) {
	former := c.set.Here()
	next, err := p.revise(former)
	if err != nil {
		return nil, calls.BadRequest(err.Error())
	}
	if p.done.DryRun {
		return &p.done, nil
	}
	switch err := c.set.SetHere(next); {
	case errors.Is(err, component.ErrStopping):
		return nil, calls.Unavailable(err)
	case err != nil:
		return nil, calls.Failed(admin.Failure{Code: admin.CodeFaults, Error: "the limits were not changed: " + err.Error()},
			http.StatusUnprocessableEntity)
	}
	p.done.Undo = p.undo(former, c.set.Now())
	record.Before, record.After = strings.Join(p.done.Before, ", "), p.after()
	objects.Done(c.host, record, p.done.Undo, nil)
	return &p.done, nil
}

// changeAll changes all instances of a source.
func (c *Component) changeAll(r *http.Request, p *planned, record source.Record, to source.Writer) (
	*admin.KeyLimitChange, *calls.Failure,
) {
	if p.entry != nil {
		p.entry.everywhere = true
	}
	record.Object = objectKey().String()
	done, f := c.set.SetAll(r.Context(), to, &overlay.Change[limited]{
		Record: record,
		Undo:   func(former map[string]limited) string { return p.undo(former, c.set.Now()) },
		Revise: func(former map[string]limited, unread error) (map[string]limited, error) {
			if unread != nil {
				return nil, unread
			}
			return p.revise(former)
		},
	})
	if f != nil {
		return nil, f
	}
	p.done.Undo, p.done.Behind = done.Undo, done.Behind
	return &p.done, nil
}

// revise gives the limits after the change.
func (p *planned) revise(former map[string]limited) (map[string]limited, error) {
	next := maps.Clone(former)
	if next == nil {
		next = map[string]limited{}
	}
	_, found := next[p.name]
	switch {
	case p.entry != nil:
		next[p.name] = *p.entry
	case !found:
		return nil, errors.New("the key has no limits of the run time here: headgate ctl key limits lists them, and --here ends those of " +
			"one instance beside a source")
	default:
		delete(next, p.name)
	}
	if len(next) > most {
		return nil, fmt.Errorf("there are %d limits of single keys, the most at once: end some, or write them as overrides of the rule",
			most)
	}
	return next, nil
}

// after describes the change for the record.
func (p *planned) after() string {
	after := strings.Join(p.done.After, ", ")
	if p.done.Until != nil {
		after += " until " + p.done.Until.Format(time.RFC3339)
	}
	return after
}

// undo gives the command that brings the former limits back.
func (p *planned) undo(former map[string]limited, now time.Time) string {
	words := slices.Clone(p.command)
	if was, found := former[p.name]; found {
		if was.limits == "" {
			words = append(words, "--unlimited")
		} else {
			words = append(words, "--limits="+was.limits)
		}
		if was.burst > 0 {
			words = append(words, "--burst="+strconv.FormatInt(was.burst, 10))
		}
		words = append(words, actions.Left(was.until, now))
	} else {
		words = append(words, "--end")
	}
	if p.here {
		words = append(words, "--here")
	}
	return actions.Command(words...)
}

// maxShownName bounds a name that an answer repeats.
const maxShownName = 128

// find gives a rule by its name.
func find(base *config.Config, name string) (*guard.Rule, *calls.Failure) {
	names := make([]string, 0, len(base.Rules))
	for i := range base.Rules {
		if base.Rules[i].Name == name {
			return &base.Rules[i], nil
		}
		names = append(names, base.Rules[i].Name)
	}
	said := "no rule has the name " + strconv.Quote(name[:min(len(name), maxShownName)]) + ": "
	if near := rule.Nearest(name, names); near != "" {
		said += "did you mean " + near + "?"
	} else {
		said += "headgate ctl status lists the rules"
	}
	return nil, calls.Failed(admin.Failure{Code: admin.CodeNotFound, Error: said}, http.StatusNotFound)
}
