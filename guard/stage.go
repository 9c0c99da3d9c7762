package guard

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Stage is a step of admission behind fair share and the rules. A request that these let
// go enters the stages of Config.Stages in order; when the request has ended, it leaves
// them in reverse order. A Stage is safe for concurrent use. It outlives reloads: a
// request leaves the stages that it entered, and a Config that lists a Stage again goes on
// with its slots and waiters.
type Stage interface {
	// Rule describes the stage to results, reports and callers: its Name, and in Exceed
	// what a front answers to a refused request. The name is that of no rule and of no
	// other stage. In Shadow what Enter refuses, or holds, goes on all the same.
	Rule() Rule
	// Facts says what the stage needs to know of requests, and may do to them.
	Facts() Facts
	// Enter decides about a request. It does not block, and calls nothing of p.Handle.
	// Allow admits the request; Deny refuses it, and the stage keeps nothing of it; Wait
	// holds it until Handle.Resume, in about RetryAfter where that is above 0.
	Enter(p *Pass) headgate.Decision
	// Leave is called once for each Pass that Enter admitted or held, with the stage's
	// own p.Value: when the request has ended, when it left while it waited, when a later
	// stage refused it, and after a Resume that refused it.
	Leave(p *Pass, o *Outcome)
}

// StreamStage is a Stage that is told when a request becomes a stream (an upgraded
// connection, a stream of gRPC), so that it can release its slot then. Leave follows at
// the end all the same.
type StreamStage interface {
	Stage
	Stream(p *Pass)
}

// Facts is what a Stage needs to know, and may do.
type Facts struct {
	// Request are the facts about a sender that Enter reads.
	Request rule.Needs
	// Answer are the names, in canonical spelling, of headers and trailers of the answer
	// that Leave reads by Outcome.Header.
	Answer []string
	// Headers are the names, in canonical spelling, under which the stage adds headers to
	// the forwarded request. What a client sends under them is removed.
	Headers []string
	// Ends says that the stage may end the context of a request (Handle.End).
	Ends bool
}

// Pass is the stay of one request in one stage.
type Pass struct {
	// Request is what the front was asked; it is right during Enter.
	Request *headgate.Request
	// Value is the stage's own.
	Value any

	handle Handle
}

// Handle gives what a stage keeps of a request, beyond Enter.
func (p *Pass) Handle() Handle { return p.handle }

// AddHeader adds a header to the forwarded request, under a name of Facts.Headers. It is
// called during Enter.
func (p *Pass) AddHeader(name, value string) {
	t := p.handle.ticket
	t.headers = append(t.headers, Header{name, value})
}

// Header is a header of the forwarded request.
type Header struct{ Name, Value string }

// Handle names one request in one stage, for as long as the request lives. Its methods do
// nothing when the request has ended. A stage calls them without holding a lock that
// Enter or Leave takes. The zero Handle names no request.
type Handle struct {
	ticket *Ticket
	turn   uint64
	stage  int
}

// Resume lets a request go on that the stage holds, or refuses it with a Deny of d. It
// reports whether the request was waiting in this stage. Resume may enter later stages,
// and call what Ticket.WaitFunc was given; beneath such a call, or beside one, the request
// goes on soon after Resume.
func (h Handle) Resume(d headgate.Decision) bool {
	return h.ticket != nil && h.ticket.resume(h, d)
}

// End ends the context of an admitted request, with a cause. It reports whether the
// request had not ended. It does nothing without Facts.Ends.
func (h Handle) End(cause error) bool {
	return h.ticket != nil && h.ticket.end(h, cause)
}

// stages are the Stages of a set, as results describe them.
type stages struct {
	all    []Stage
	rules  []Rule
	window window
	facts  Facts
}

// StageObserver is an Observer that is told what stages decide after a wait, and of ends.
type StageObserver interface {
	Observer
	// ObserveStage is told of a decision that a stage made after the request had waited.
	ObserveStage(r *Result)
	// ObserveEnd is told of each request's end, where a Config has Stages.
	ObserveEnd(o *Outcome)
}

// prepareStages reads what the Stages of the Config say of themselves.
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
		all.all, all.rules = append(all.all, stage), append(all.rules, r)
		all.facts.Answer = append(all.facts.Answer, facts.Answer...)
		all.facts.Ends = all.facts.Ends || facts.Ends
		s.needs |= facts.Request
		for _, name := range slices.Concat(facts.Headers, facts.Answer) {
			if err := checkHeader(name); err != nil {
				return fmt.Errorf("guard: stage %q: %w", r.Name, err)
			}
		}
		for _, name := range facts.Headers {
			s.marks = append(s.marks, spellings(name)...)
		}
	}
	return nil
}

// checkStage refuses a name that another stage or rule has.
func (s *set) checkStage(r *Rule) error {
	taken := r.Name == "" || r.Name == FairShareName
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
