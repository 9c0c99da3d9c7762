package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/internal/wheel"
	"github.com/headgate/headgate/rule"
)

// Stage is a step of admission after fair share and the rules. A request that these allow enters
// the stages of Config.Stages in order. After its end, it leaves them in reverse order.
//
// A Stage is safe for concurrent use. A Stage outlives reloads: a request leaves the stages that
// it entered. A new Config that lists the same Stage keeps its slots and waiters.
type Stage interface {
	// Rule describes the stage in results and reports: its Name, and, in Exceed, a front's answer
	// to a refused request. The name differs from every rule and every other stage. In mode
	// Shadow, requests continue although Enter refuses or holds them.
	Rule() Rule
	// Facts gives the facts about requests that the stage needs, and what it may do to requests.
	Facts() Facts
	// Enter decides on a request. Enter must not block, and must not call methods of p.Handle.
	// Allow admits the request. Deny refuses it: the stage keeps nothing of the request. Wait
	// holds the request until Handle.Resume. A RetryAfter above 0 estimates that time.
	Enter(p *Pass) headgate.Decision
	// Leave is called once for each Pass that Enter admitted or held, with the stage's p.Value.
	// The request has ended, has left while it waited, was refused by a later stage, or was
	// refused by Resume.
	Leave(p *Pass, o *Outcome)
}

// StreamStage is a Stage with a call for requests that become streams: upgraded connections,
// server-sent events and gRPC streams. The stage can release its slot in that call. Leave still
// follows at the end.
type StreamStage interface {
	Stage
	Stream(p *Pass)
}

// AnswerStage is a Stage with a call for the begin of the answer to a forwarded request: its header. status is
// the HTTP status, and 0 for gRPC. Fronts say nothing of failures of their own, and of answers that end as they begin.
type AnswerStage interface {
	Stage
	Answers(p *Pass, status int)
}

// ForwardStage is a Stage with a call for requests that all stages have admitted, after their
// waits and before they are forwarded. Pass.AddHeader may be called then, too.
type ForwardStage interface {
	Stage
	Forward(p *Pass)
}

// ReloadStage is a Stage with calls for changes of a guard's Config. Both calls may resume requests.
type ReloadStage interface {
	Stage
	// Apply is called when a Config with the stage takes effect, by New or by a reload.
	Apply()
	// Remove is called on a stage of the former Config when a Config takes effect that has no
	// stage with this name.
	Remove()
}

// Facts are what a Stage must know, and what it may do.
type Facts struct {
	// Request are the facts about a sender that Enter reads.
	Request rule.Needs
	// Answer are the headers and trailers of the answer that Leave reads by Outcome.Header, in
	// canonical spelling.
	Answer []string
	// Private are those names of Answer that are for the stage alone: fronts remove them before
	// the answer reaches the client. Fronts also remove them from requests, because a service may
	// echo what a client sends.
	Private []string
	// Headers are the names, in canonical spelling, of the headers that the stage adds to the
	// forwarded request. The same headers from a client are removed.
	Headers []string
	// Ends reports that the stage may end the context of each request (Handle.End). Pass.Ends does so for one request,
	// which costs the others nothing.
	Ends bool
}

// Pass is one request in one stage.
type Pass struct {
	// Request is the request of the front. It is valid during Enter.
	Request *headgate.Request
	// Value belongs to the stage.
	Value any

	handle  Handle
	entered time.Duration // Ticket.now at Enter
}

// Handle gives the part of a Pass that a stage may keep after Enter.
func (p *Pass) Handle() Handle { return p.handle }

// TimeLeft gives the time until the deadline of the context of Admit, and whether there is one.
func (p *Pass) TimeLeft() (time.Duration, bool) {
	deadline := p.handle.ticket.deadline
	if deadline.IsZero() {
		return 0, false
	}
	return deadline.Sub(machineTime()), true
}

// Now gives the time of clock c at the current call of the stage. If c and the clock of the guard's State are the machine's, it is the
// time that the guard has read for this call or, if the request has not waited since, for the call before.
func (p *Pass) Now(c Clock) time.Duration {
	t := p.handle.ticket
	return wheel.Convert(c, t.guard.state.queues.clock, t.now)
}

// Prompt reports whether the request has not waited since Enter.
func (p *Pass) Prompt() bool { return p.entered == p.handle.ticket.now }

// AddHeader adds a header to the forwarded request, with a name of Facts.Headers. Call AddHeader
// during Enter, or during Forward of a ForwardStage.
func (p *Pass) AddHeader(name, value string) {
	t := p.handle.ticket
	t.headers = append(t.headers, Header{name, value})
}

// Ends lets Handle.End end the context of this request. Call Ends during Forward of a ForwardStage.
func (p *Pass) Ends() {
	t := p.handle.ticket
	t.mu.Lock()
	t.ends = true
	t.mu.Unlock()
}

// Header is a header of the forwarded request.
type Header struct{ Name, Value string }

// Handle names one request in one stage while the request lives. After the end of the request,
// its methods do nothing. A stage must not hold a lock during these calls if Enter or Leave
// takes that lock. The zero Handle names no request.
type Handle struct {
	ticket *Ticket
	turn   uint64
	stage  int
}

// Resume continues a request that the stage holds, or refuses it if d is a Deny. It reports
// whether the request was waiting in this stage. Resume may enter later stages and call the
// function of Ticket.WaitFunc. If such a call is in progress, the request continues soon
// after Resume.
func (h Handle) Resume(d headgate.Decision) bool {
	return h.ticket != nil && h.ticket.resume(h, d)
}

// End ends the context of an admitted request, with a cause. It reports whether the request was
// still in progress. Without Facts.Ends and Pass.Ends, End does nothing.
func (h Handle) End(cause error) bool {
	return h.ticket != nil && h.ticket.end(h, cause)
}

// Receiving reports whether the request waits for its client: a read of its body is blocked now.
func (h Handle) Receiving() bool {
	t := h.ticket
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn == h.turn && t.receiving
}

// stages are the Stages of a set, and their descriptions for results.
type stages struct {
	all    []Stage
	rules  []Rule
	calls  []stageCalls // of all
	window window
	facts  Facts
}

// stageCalls are the optional calls of a Stage; nil for those that it does not have. A type assertion for each request costs more.
type stageCalls struct {
	forward ForwardStage
	answers AnswerStage
	stream  StreamStage
}

func callsOf(s Stage) (c stageCalls) {
	c.forward, _ = s.(ForwardStage)
	c.answers, _ = s.(AnswerStage)
	c.stream, _ = s.(StreamStage)
	return c
}

// StageObserver is an Observer that also gets stage decisions after a wait, and the ends of
// requests.
type StageObserver interface {
	Observer
	// ObserveStage gets a decision that a stage made after the request had waited.
	ObserveStage(r *Result)
	// ObserveEnd gets the end of each request of a Config with Stages.
	ObserveEnd(o *Outcome)
}

// applyStages tells the stages of a former and of the current Config that the latter has taken effect.
func applyStages(former, current []Stage) {
	for _, stage := range former {
		named := func(other Stage) bool { return other.Rule().Name == stage.Rule().Name }
		if removed, ok := stage.(ReloadStage); ok && !slices.ContainsFunc(current, named) {
			removed.Remove()
		}
	}
	for _, stage := range current {
		if applied, ok := stage.(ReloadStage); ok {
			applied.Apply()
		}
	}
}

// prepareStages reads the descriptions and facts of the Stages of the Config.
func (s *set) prepareStages() error {
	for _, stage := range s.config.Stages {
		r, facts := stage.Rule(), stage.Facts()
		if err := s.checkStage(&r); err != nil {
			return err
		}
		if r.Mode == Off {
			continue
		}
		all := &s.stages
		all.all, all.rules, all.calls = append(all.all, stage), append(all.rules, r), append(all.calls, callsOf(stage))
		all.facts.Answer = append(all.facts.Answer, facts.Answer...)
		all.facts.Private = append(all.facts.Private, facts.Private...)
		all.facts.Ends = all.facts.Ends || facts.Ends
		s.needs |= facts.Request
		for _, name := range slices.Concat(facts.Headers, facts.Answer, facts.Private) {
			if err := checkHeader(name); err != nil {
				return fmt.Errorf("guard: stage %q: %w", r.Name, err)
			}
		}
		for _, name := range slices.Concat(facts.Headers, facts.Private) {
			s.marks = append(s.marks, spellings(name)...)
		}
	}
	return nil
}

// checkStage refuses a name that another stage or rule has.
func (s *set) checkStage(r *Rule) error {
	taken := r.Name == "" || r.Name == FairShareName || r.Name == SourceName || r.Name == SentName
	for i := range s.config.Rules {
		taken = taken || s.config.Rules[i].Name == r.Name
	}
	for i := range s.stages.rules {
		taken = taken || s.stages.rules[i].Name == r.Name
	}
	if taken {
		return fmt.Errorf("guard: stage %q: its name is empty, or that of a rule or of another stage: choose another", r.Name)
	}
	return nil
}
