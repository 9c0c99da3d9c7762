package client

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/rule"
)

// Guard gives a guard whose requests the servers decide, for package httplimit and package grpclimit. It sends only
// the headers and cookies that the rules of the server read, which the server tells. Each Client has one Guard.
//
// A rule of the server can count by a part of requests that the package cannot give, like descriptor:tenant with httplimit. Then Check of
// the package gives a *guard.UnsuppliedError, once a server has told its rules, and the log has it. It stops no request: the rule may
// match only requests of other programs.
//
// When no server answers, the fallback of the Config decides: a refusal has the reason StoreUnavailable. The first
// requests wait up to Config.Timeout for a server.
func (k *Client) Guard() *guard.Guard { return k.guard }

// decider is the guard.Decider of a Client.
type decider struct{ client *Client }

// Reads implements guard.Decider.
func (d decider) Reads() guard.Reading {
	r := d.client.reads.Load()
	if r == nil {
		return guard.Reading{}
	}
	f := guard.Reading{Needs: rule.NeedIP, Reads: rule.Reads{Headers: r.GetHeaders(), Cookies: r.GetCookies()}, Marks: r.GetMarks()}
	for _, name := range r.GetQueries() {
		f.Reads.AddQuery(name)
	}
	for _, text := range r.GetParts() {
		if p, err := rule.ParsePart(text); err == nil { // A newer server can have others.
			f.Parts = append(f.Parts, p)
		}
	}
	if r.GetHost() {
		f.Needs |= rule.NeedHost
	}
	if r.GetSubject() {
		f.Needs |= rule.NeedSubject
	}
	if r.GetPlainParameters() {
		f.Needs |= rule.NeedPlainParameters
	}
	return f
}

// reading is what the rules of the server read. headers are those that a request is sent with, each once and without
// those of which all lines are sent: a server refuses a request with a header twice.
type reading struct {
	*headgatev1.Reads

	headers []string
}

// setReads notes what the rules read. The guard has it from the next request on.
func (k *Client) setReads(r *headgatev1.Reads) {
	sent := &reading{Reads: r}
	seen := map[string]bool{}
	for _, name := range r.GetLines() {
		seen[http.CanonicalHeaderKey(name)] = true
	}
	for _, name := range r.GetHeaders() {
		if key := http.CanonicalHeaderKey(name); !seen[key] {
			seen[key] = true
			sent.headers = append(sent.headers, name)
		}
	}
	k.reads.Store(sent)
	if err := k.guard.Reload(guard.Config{Decider: decider{k}}); err != nil {
		k.config.Log.Error("what the rules of the server read has no effect", "error", err)
	}
	k.known.Do(func() { close(k.notified) })
	k.lacks.check(k.config.Log, decider{k}.Reads())
}

// lacks compares the fronts of the guard with the parts of keys by which the rules of the server count.
type lacks struct {
	mu     sync.Mutex
	fronts []guard.Front
	logged []string // the last fault of each front
}

// Attached implements guard.FrontDecider.
func (d decider) Attached(f guard.Front) {
	l := &d.client.lacks
	l.mu.Lock()
	if !slices.Contains(l.fronts, f) {
		l.fronts, l.logged = append(l.fronts, f), append(l.logged, "")
	}
	l.mu.Unlock()
	l.check(d.client.config.Log, d.Reads())
}

// check logs the first part that a front cannot give, once for each front until there is another one. All requests that a rule counts
// by it share one count. The rule may be for other programs, so it stops nothing here.
func (l *lacks) check(log *slog.Logger, r guard.Reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.fronts {
		err := r.Lacks(f)
		if err == nil {
			continue
		}
		if text := err.Error(); text != l.logged[i] {
			l.logged[i] = text
			log.Error("requests of this program share one count under a rule of the server, if the rule matches them", "error", text)
		}
	}
}

// Decide implements guard.Decider.
func (d decider) Decide(ctx context.Context, req *headgate.Request, a *guard.Answer) error {
	k := d.client
	notified := k.awaitReads(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if !notified {
		return k.fallBackTo(ctx, req, a)
	}
	c := k.call()
	c.data = appendRequest(c.data[:0], req, k.reads.Load())
	answer, answered, err := k.decide(ctx, c)
	switch {
	case err == nil && !answered:
		return k.fallBackTo(ctx, req, a)
	case errors.Is(err, errBusy), errors.Is(err, ErrUnavailable):
		return k.fallBackTo(ctx, req, a)
	case err != nil:
		return guardError(err)
	}
	answer.fill(a)
	return nil
}

// guardError converts the error of a server for a guard.
func guardError(err error) error {
	fault, found := errortype.As[*RequestError](err)
	switch {
	case !found || fault.Forbidden:
		return err
	case fault.header != "":
		return &guard.CostError{Header: fault.header, Problem: strings.TrimPrefix(fault.Problem, "guard: the cost in "+fault.header+" ")}
	default:
		return &guard.RequestError{Problem: fault.Problem}
	}
}

// awaitReads waits for what the rules read. It reports false if no server has told it in time.
func (k *Client) awaitReads(ctx context.Context) bool {
	select {
	case <-k.notified:
		return true
	default:
	}
	late := time.NewTimer(k.config.Timeout)
	defer late.Stop()
	select {
	case <-k.notified:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// fill writes an answer as results of a guard.
func (a *Answer) fill(into *guard.Answer) {
	into.Verdict = a.Verdict
	if a.Policy == "" && a.Verdict == headgate.Allow {
		return
	}
	reason := reasonOf(a.Reason)
	r := a.rule()
	into.Results = append(into.Results, guard.Result{
		Rule: r, Policy: a.Policy, Limit: a.Quota, Fallback: a.Fallback || a.Local,
		Decision: headgate.Decision{
			Verdict: a.Verdict, Reason: reason, Limit: a.Limit, Remaining: a.Remaining, RetryAfter: a.RetryAfter, ResetAfter: a.ResetAfter,
		},
	})
	for _, policy := range a.Violated {
		if policy != a.Policy {
			other := into.Results[0]
			other.Policy = policy
			into.Results = append(into.Results, other)
		}
	}
	a.fillMarks(into, reason)
	a.fillMetered(into, reason)
}

// fillMetered adds the number of metered units. The first result has it if its limit meters.
func (a *Answer) fillMetered(into *guard.Answer, reason headgate.Reason) {
	switch {
	case a.Metered <= 0 || a.Verdict == headgate.Deny:
	case reason == headgate.Metered:
		into.Results[0].Beyond = a.Metered
	default:
		r := &guard.Rule{Rule: rule.Rule{Name: a.Policy}, Mode: guard.Enforce}
		into.Results = append(into.Results, guard.Result{
			Rule: r, Policy: a.Policy, Beyond: a.Metered, Decision: headgate.Decision{Verdict: headgate.Allow, Reason: headgate.Metered},
		})
	}
}

// rule gives the rule of an answer, as far as the answer tells it.
func (a *Answer) rule() *guard.Rule {
	r := &guard.Rule{Rule: rule.Rule{Name: a.Policy}, Mode: guard.Enforce, Exceed: guard.Exceed{Action: guard.Reject, Status: a.Status}}
	if a.Location != "" {
		r.Exceed.Action, r.Exceed.Location = guard.Redirect, a.Location
	}
	return r
}

// fillMarks adds the headers for the service. The first result has one of them if it degrades, and gives the warning of
// soft limits.
func (a *Answer) fillMarks(into *guard.Answer, reason headgate.Reason) {
	first := reason == headgate.Degraded
	for _, m := range a.Marks {
		degrades := guard.Exceed{Action: guard.Degrade, Header: m.Name, Value: m.Value}
		switch {
		case m.Name == guard.FieldMark && reason == headgate.SoftLimit:
		case m.Name == guard.FieldMark && reason == headgate.Metered:
			into.Results[0].AboveSoft = true
		case first:
			into.Results[0].Rule.Exceed, first = degrades, false
		default:
			r := &guard.Rule{Rule: rule.Rule{Name: a.Policy}, Mode: guard.Enforce, Exceed: degrades}
			into.Results = append(into.Results, guard.Result{
				Rule: r, Policy: a.Policy, Decision: headgate.Decision{Verdict: headgate.Allow, Reason: headgate.Degraded},
			})
		}
	}
}

// reasonOf gives the reason of a name.
func reasonOf(name string) headgate.Reason {
	for _, r := range headgate.Reasons() {
		if r.String() == name {
			return r
		}
	}
	return headgate.OverLimit // Of a newer server.
}

// fallBackTo decides without a server.
func (k *Client) fallBackTo(ctx context.Context, req *headgate.Request, a *guard.Answer) error {
	k.stats.fallbacks.Add(1)
	switch k.config.Fallback {
	case guard.FallbackAllow:
		return nil
	case guard.FallbackLocal:
		return k.askLocal(ctx, req, a)
	default:
		denied := Answer{Verdict: headgate.Deny, Reason: headgate.StoreUnavailable.String(), Local: true}
		denied.fill(a)
		return nil
	}
}

// askLocal decides by Config.Local, and waits there.
func (k *Client) askLocal(ctx context.Context, req *headgate.Request, a *guard.Answer) error {
	var answer guard.Answer
	if err := k.config.Local.Decide(ctx, req, &answer); err != nil {
		return err
	}
	if answer.Verdict == headgate.Wait {
		if err := k.config.Local.Wait(ctx, &answer); err != nil {
			return err
		}
		answer.Verdict = headgate.Allow
	}
	a.Verdict = answer.Verdict
	closest := answer.Closest()
	if closest != nil {
		a.Results = append(a.Results, *closest)
	}
	for i := range answer.Results {
		if r := &answer.Results[i]; r != closest {
			a.Results = append(a.Results, *r)
		}
	}
	return nil
}
