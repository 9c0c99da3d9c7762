package trial

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
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// Bounds of trials.
const (
	most        = 8 // at once: each is a further limit in every decision of its rule
	maxBody     = 16 << 10
	defaultTime = 10 * time.Minute
	mostTime    = 24 * time.Hour
)

func (c *Component) answerList(w http.ResponseWriter, _ *http.Request) {
	now := c.set.Now()
	shown := c.list(now)
	if shown == nil {
		shown = []admin.Trial{}
	}
	calls.WriteJSON(c.host.Log, w, admin.Trials{Now: now.UTC(), Trials: shown, Most: most})
}

// answerStart begins a trial, or gives a trial that is in progress another end.
func (c *Component) answerStart(w http.ResponseWriter, r *http.Request) {
	order := new(admin.TrialOrder)
	if f := calls.ReadJSON(w, r, maxBody, order, `{"rule": "search", "limits": ["25/1s"], "for": "10m"}`); f != nil {
		calls.Fail(c.host.Log, w, f)
		return
	}
	shown, f := c.start(r, order)
	if f != nil {
		calls.Fail(c.host.Log, w, f)
		return
	}
	calls.WriteJSON(c.host.Log, w, shown)
}

func (c *Component) start(r *http.Request, order *admin.TrialOrder) (*admin.Trial, *calls.Failure) {
	lasts, f := checkOrder(order)
	if f != nil {
		return nil, f
	}
	c.instance.Lock()
	defer c.instance.Unlock()
	base, limits := c.instance.Base(), &config.NewLimits{Limits: order.Limits, Burst: order.Burst}
	own, f := find(base, order.Rule)
	if f != nil {
		return nil, f
	}
	policies, err := config.CheckTrial(own, limits)
	if err != nil {
		return nil, calls.BadRequest(strings.TrimPrefix(err.Error(), "rule: "))
	}
	now, name := c.set.Now(), config.TrialName(own.Name, limits)
	former := c.set.Here()
	one := trial{
		rule: own.Name, limits: strings.Join(order.Limits, ","), burst: order.Burst, since: now, until: now.Add(lasts),
		by: access.CallOf(r.Context()).Client().Name(), reason: order.Reason,
	}
	before, again := former[name]
	if again {
		one.since = before.since
	}
	next := maps.Clone(former)
	next[name] = one
	switch _, taken := former[name]; {
	case !taken && len(next) > most:
		return nil, calls.BadRequest(fmt.Sprintf("there are %d trials, the most at once: stop one with headgate ctl trial stop NAME", most))
	case slices.ContainsFunc(base.Rules, func(r guard.Rule) bool { return r.Name == name }):
		return nil, calls.BadRequest("a rule of the configuration has the name of the trial, " + name + ": try another limit")
	case order.DryRun:
		shown := c.preview(name, &one, own, config.LimitTexts(policies))
		return shown, nil
	}
	if !again {
		c.note(name, own.Name)
	}
	undo := actions.Command("headgate", "ctl", "trial", "stop", name)
	if again {
		undo = before.command(now)
	}
	if f := c.put(r, next, name, "trial", order.Reason, undo); f != nil {
		return nil, f
	}
	shown := c.shown(name)
	shown.Undo = undo
	return shown, nil
}

// preview is the answer of a dry run.
func (c *Component) preview(name string, t *trial, own *guard.Rule, limits []string) *admin.Trial {
	d := c.document(name, t, nil, t.since)
	d.Paused, d.DryRun, d.Tried.Limits, d.Present.Limits = "", true, limits, config.LimitTexts(own.Policies)
	d.LeavesOut, d.Notes = config.TrialLeavesOut(own), notes(own)
	return &d
}

// note remembers the counts of a rule before its trial begins.
func (c *Component) note(name, ruleName string) {
	rules := c.report.Rules()
	c.mu.Lock()
	defer c.mu.Unlock()
	for former := range c.began { // Of trials that have ended.
		if _, found := c.set.Current()[former]; !found {
			delete(c.began, former)
		}
	}
	for i := range rules {
		if rules[i].Rule.Name == ruleName {
			c.began[name] = countsOf(&rules[i])
		}
	}
}

// shown gives a trial in effect.
func (c *Component) shown(name string) *admin.Trial {
	all := c.list(c.set.Now())
	if i := slices.IndexFunc(all, func(t admin.Trial) bool { return t.Name == name }); i >= 0 {
		return &all[i]
	}
	return &admin.Trial{Name: name}
}

// put applies trials, with a record. The caller holds the lock of the instance.
func (c *Component) put(r *http.Request, next map[string]trial, name, action, reason, undo string) *calls.Failure {
	only := func(all map[string]trial) string {
		one, found := all[name]
		if !found {
			return "none"
		}
		return text(map[string]trial{name: one})
	}
	record := objects.Record(r, "trials/"+name, reason)
	record.Action, record.Before, record.After = action, only(c.set.Current()), only(next)
	switch err := c.set.SetHere(next); {
	case errors.Is(err, component.ErrStopping):
		return calls.Unavailable(err)
	case err != nil:
		return calls.Failed(admin.Failure{Code: admin.CodeFaults, Error: "the trials were not changed: " + err.Error()},
			http.StatusUnprocessableEntity)
	}
	objects.Done(c.host, &record, undo, nil)
	return nil
}

// answerStop ends a trial, and answers with its last figures.
func (c *Component) answerStop(w http.ResponseWriter, r *http.Request) {
	terms, f := calls.TermsOf(r, false)
	if f != nil {
		calls.Fail(c.host.Log, w, f)
		return
	}
	name := r.PathValue("name")
	c.instance.Lock()
	defer c.instance.Unlock()
	next := maps.Clone(c.set.Here())
	one, found := next[name]
	if !found {
		calls.Fail(c.host.Log, w, calls.Failed(admin.Failure{Code: admin.CodeNotFound, Error: unknown(name, next)}, http.StatusNotFound))
		return
	}
	shown := c.shown(name)
	if shown.DryRun = terms.DryRun; !terms.DryRun {
		delete(next, name)
		shown.Undo = one.command(c.set.Now())
		if f := c.put(r, next, name, "trial stop", terms.Reason, shown.Undo); f != nil {
			calls.Fail(c.host.Log, w, f)
			return
		}
	}
	calls.WriteJSON(c.host.Log, w, shown)
}

// command starts the trial again, for the time that it has left.
func (t trial) command(now time.Time) string {
	words := append([]string{"headgate", "ctl", "trial", "start", t.rule}, strings.Split(t.limits, ",")...)
	if t.burst > 0 {
		words = append(words, "--burst="+strconv.FormatInt(t.burst, 10))
	}
	return actions.Command(append(words, actions.Left(t.until, now))...)
}

// maxShownName bounds a name that an answer repeats.
const maxShownName = 128

// unknown says that no trial has a name, and which one is near.
func unknown(name string, all map[string]trial) string {
	said := "no trial has the name " + strconv.Quote(name[:min(len(name), maxShownName)]) + ": "
	if near := rule.Nearest(name, slices.Collect(maps.Keys(all))); near != "" {
		return said + "did you mean " + near + "?"
	}
	return said + "headgate ctl trial lists them; a trial may have ended"
}

// checkOrder checks what does not depend on the rules.
func checkOrder(order *admin.TrialOrder) (lasts time.Duration, f *calls.Failure) {
	if f := calls.CheckReason(order.Reason); f != nil {
		return 0, f
	}
	lasts = defaultTime
	if order.For != "" {
		var err error
		if lasts, err = rule.ParseDuration(order.For); err != nil || lasts < time.Second || lasts > mostTime {
			return 0, calls.BadRequest("for is how long the trial lasts: write a time from 1s to 24h, like 10m")
		}
	}
	return lasts, nil
}

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
