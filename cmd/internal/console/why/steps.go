package why

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
)

// maxMissed bounds the rules that nearly match.
const maxMissed = 5

// explanation makes the answer of one call.
type explanation struct {
	*explain.Live

	store   *open.Opened
	sent    *http.Request
	results []guard.Result
	out     *admin.Why
}

// answer makes the steps in the order of decision, and then the sentence.
func (e *explanation) answer() *admin.Why {
	e.out = &admin.Why{Now: e.Now.UTC(), Request: e.request(), Steps: []admin.WhyStep{}}
	if e.Invalid != nil {
		e.invalid()
		return e.out
	}
	e.results = e.Answer.Results
	if e.Explained.At != 0 {
		e.out.Now = e.Explained.At.Time()
	}
	e.exempt()
	if !e.Answer.Exempt {
		e.shareStep()
		e.banSteps()
		e.ruleSteps(admin.StepRule)
		e.ruleSteps(admin.StepQuota)
		e.otherRules()
		e.throttleStep()
	}
	e.verdict()
	e.service()
	e.general()
	e.out.Sentence = e.sentence()
	return e.out
}

func (e *explanation) add(s admin.WhyStep) { e.out.Steps = append(e.out.Steps, s) }

// request describes the request as the rules see it.
func (e *explanation) request() admin.WhyRequest {
	r, host := e.Request, e.sent.Host
	seen := admin.WhyRequest{Method: e.sent.Method, Path: r.Path, Host: host, Address: peerText(e.sent.RemoteAddr), Subject: r.Subject}
	if seen.Path == "" {
		seen.Path = e.sent.URL.Path
	}
	if r.ClientIP.IsValid() && r.ClientIP.String() != seen.Address {
		seen.Client = r.ClientIP.String()
	}
	return seen
}

// peerText returns the address of the connection without its port.
func peerText(remote string) string {
	if remote == "@" {
		return "unix"
	}
	host := remote
	if i := strings.LastIndexByte(remote, ':'); i >= 0 {
		host = remote[:i]
	}
	return strings.Trim(host, "[]")
}

// invalid describes a request that is refused before any rule.
func (e *explanation) invalid() {
	_, problem, found := strings.Cut(e.Invalid.Error(), ": ") // The text without the package name.
	if !found {
		problem = e.Invalid.Error()
	}
	e.out.Verdict, e.out.Status, e.out.Reason = "invalid", e.Status, "invalid_request"
	e.add(admin.WhyStep{
		Kind: admin.StepRequest, Applies: true, Verdict: headgate.Deny.String(), Reason: "invalid_request", Decides: true, Text: problem,
	})
	e.out.Sentence = fmt.Sprintf("%s is refused with %d before any rule: %s.", e.line(), e.Status, problem)
}

// exempt says whether an entry of exempt leaves out the request.
func (e *explanation) exempt() {
	if len(e.Config.Exempt) == 0 {
		return
	}
	at, text, ok := e.ExemptEntry()
	if !ok {
		e.add(admin.WhyStep{Kind: admin.StepExempt, Text: "no entry of exempt matches"})
		return
	}
	e.add(admin.WhyStep{
		Kind: admin.StepExempt, Name: fmt.Sprintf("exempt[%d]", at), Applies: true, Verdict: headgate.Allow.String(), Decides: true,
		Text: "the entry matches (" + text + "): nothing decides the request, and nothing counts it",
	})
}

// stage returns the result of fair share or a stage; nil for none.
func (e *explanation) stage(name string) *guard.Result {
	n := slices.IndexFunc(e.results, func(r guard.Result) bool { return r.Stage == name })
	if n < 0 {
		return nil
	}
	return &e.results[n]
}

// otherRules says of the nearest rules that do not decide why they do not.
func (e *explanation) otherRules() {
	for _, one := range e.Uncounted() {
		e.add(admin.WhyStep{
			Kind: admin.StepRule, Name: one.Name, Mode: modeText(one), Applies: true, Verdict: headgate.Allow.String(),
			Key: one.KeyText(e.Seen()), Override: explain.OverrideText(e.Override(one)),
			Text: "an override makes the key unlimited: nothing is counted",
		})
	}
	if e.refusedByShare() {
		e.add(admin.WhyStep{Kind: admin.StepRule, Text: "rules do not count requests that fair share refuses"})
		return
	}
	for _, p := range e.PassedOver() {
		text := fmt.Sprintf("rule %s of the same group %s decides in its place", p.By, p.Rule.Group)
		e.add(admin.WhyStep{Kind: admin.StepRule, Name: p.Rule.Name, Mode: modeText(p.Rule), Text: text})
	}
	for _, s := range e.Skipped() {
		text := fmt.Sprintf("the request has no %s, and missing is skip", s.Part)
		e.add(admin.WhyStep{Kind: admin.StepRule, Name: s.Rule.Name, Mode: modeText(s.Rule), Text: text})
	}
	nearest, more := e.Nearest(maxMissed)
	for _, m := range nearest {
		if slices.ContainsFunc(e.out.Steps, func(s admin.WhyStep) bool { return s.Name == m.Rule }) {
			continue
		}
		text := "does not match: " + strings.Join(m.Reasons, "; ")
		e.add(admin.WhyStep{Kind: admin.StepRule, Name: m.Rule, Mode: e.modeOf(m.Rule), Missed: m.Reasons, Text: text})
	}
	if more > 0 {
		e.add(admin.WhyStep{Kind: admin.StepRule, Text: fmt.Sprintf("%d more rules do not match", more)})
	}
}

func (e *explanation) modeOf(name string) string {
	for i := range e.Config.Rules {
		if e.Config.Rules[i].Name == name {
			return modeText(&e.Config.Rules[i])
		}
	}
	return ""
}

func (e *explanation) refusedByShare() bool {
	r := e.stage(guard.FairShareName)
	return r != nil && r.Enforced() && r.Decision.Verdict == headgate.Deny && !e.Config.Independent
}

// modeText gives the mode of a rule, and the part of the keys that it applies to.
func modeText(r *guard.Rule) string {
	if r.Switch != nil && r.Switch.Percent > 0 {
		return fmt.Sprintf("%s %d%%", r.Mode, r.Switch.Percent)
	}
	return r.Mode.String()
}

// throttleStep describes the throttle. A request that waits for a rule enters it later.
func (e *explanation) throttleStep() {
	settings := e.Config.Throttle
	if settings == nil || settings.Mode == guard.Off {
		return
	}
	step := admin.WhyStep{Kind: admin.StepThrottle, Name: throttler.Name, Mode: settings.Mode.String()}
	stage := e.store.Throttle()
	if stage == nil {
		return
	}
	load, stats := stage.Load()
	class, tenant := stage.ClassOf(e.Request)
	queue := &admin.WhyQueue{Class: class.String(), Tenant: tenant, InFlight: load.InFlight, Concurrency: load.Limit, Hung: stats.Hung}
	for _, n := range load.Queued {
		queue.Queued += n
	}
	step.Queue = queue
	r := e.stage(throttler.Name)
	if r == nil {
		step.Text = "is not reached: " + notReached(e.Answer.Verdict)
		e.add(step)
		return
	}
	e.decided(&step, r, r)
	queue.WaitSeconds = e.Explained.QueueWait.Seconds()
	step.Text = throttleText(r, queue)
	if r.Decision.Verdict != headgate.Allow {
		step.Actions = e.throttleActions(r)
	}
	e.add(step)
}

func notReached(v headgate.Verdict) string {
	if v == headgate.Wait {
		return "the request enters it after its wait, and what it decides then is not known"
	}
	return "the request is refused before"
}

// decided fills in what a result decides for a step.
func (e *explanation) decided(step *admin.WhyStep, r, strictest *guard.Result) {
	d := &strictest.Decision
	step.Applies, step.Verdict, step.Reason = true, d.Verdict.String(), d.Reason.String()
	if !strictest.Final() {
		step.RetrySeconds = d.RetryAfter.Seconds()
	}
	if r.Stage == "" {
		step.Cost = r.Cost()
	}
	closest := e.closest()
	step.Decides = closest != nil && closest.Rule == r.Rule && e.Answer.Verdict != headgate.Allow && strictest.Enforced()
}

// closest returns the result that determines the verdict: that of the throttle, if it holds the request. It is nil without one.
func (e *explanation) closest() *guard.Result {
	if r := e.stage(throttler.Name); r != nil && r.Enforced() && r.Decision.Verdict == headgate.Wait {
		return r
	}
	return e.Answer.Closest()
}

// verdict sets what is decided in the whole.
func (e *explanation) verdict() {
	a, out := e.Answer, e.out
	out.Verdict = a.Verdict.String()
	closest := e.closest()
	if a.Verdict == headgate.Allow || closest == nil {
		return
	}
	out.Drops = a.Drops()
	if out.Status = e.Status; out.Drops {
		out.Status = 0
	}
	out.By, out.Reason = closest.Rule.Name, closest.Decision.Reason.String()
	if closest.Stage != throttler.Name {
		out.Key = e.keyOf(closest)
	}
	switch {
	case closest.Stage == throttler.Name && a.Verdict == headgate.Wait:
		out.RetrySeconds = e.Explained.QueueWait.Seconds()
	case !closest.Final():
		out.RetrySeconds = closest.Decision.RetryAfter.Seconds()
	}
}

// service says whether the request reaches the service.
func (e *explanation) service() {
	step := admin.WhyStep{Kind: admin.StepService, Applies: e.Answer.Verdict != headgate.Deny}
	switch e.Answer.Verdict {
	case headgate.Deny:
		step.Text = "the request does not reach the service"
	case headgate.Wait:
		step.Text = "the service answers after the wait: an error of then is its own"
	default:
		step.Text = "the service answers: an error from here on is its own"
		step.Verdict = headgate.Allow.String()
	}
	e.add(step)
}

// general lists what is not known of the whole.
func (e *explanation) general() {
	if err := e.Answer.StoreError; err != nil {
		e.out.Unknown = append(e.out.Unknown, "the store does not answer, so that fallbacks decide: "+err.Error())
	}
	if e.store != nil && e.store.Shared() && e.store.State().Ahead != nil {
		e.out.Unknown = append(e.out.Unknown,
			"instances may hold units that they have taken ahead of need (prefetch): such a unit still lets a request of its key "+
				"pass there, and each instance repeats refusals for up to a second")
	}
}
