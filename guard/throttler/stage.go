package throttler

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/internal/wheel"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/rule"
)

// Stage is a guard.Stage that throttles. Make it with New. It is safe for concurrent use. For a
// reload, make the next Stage by With: it has the same requests.
type Stage struct {
	*service

	config  Config
	classes *rule.Index // of Config.Classes; nil without entries
	version uint64      // The latest version that a guard uses decides on the limits.
}

// service is what all stages before one service have in common.
type service struct {
	clock  Clock
	timers *wheel.Timers

	mu        sync.Mutex // Guards the fields below. It is held for a few steps.
	throttler *throttle.Throttler
	versions  uint64 // of all stages
	applied   uint64 // the version whose limits the throttler has
	tenants   names
	routes    names
	numbers   names  // milliseconds in headers
	text      []byte // of the request that enters
	found     []int  // the entries of Config.Classes that it matches
	queue     waiting
	free      *entry
	freed     int
	stats     Stats
}

// entry is one request in the stage.
type entry struct {
	throttle.Request

	handle         guard.Handle
	timer          wheel.Entry
	next           *entry // in the list of free entries
	since          headgate.Instant
	call           time.Duration // its grpc-timeout; 0 without one
	queued         bool          // in service.queue
	later, earlier *entry        // the neighbours there
	stream         bool          // keeps its slot, and teaches nothing
	watched        bool          // a probe, which the timer may end
	again          time.Duration // how often the timer looks whether the probe waits for its client
}

// resumption is a request whose wait has ended. It is a copy: the entry may serve another request
// before Resume is called, and the Handle then does nothing.
type resumption struct {
	handle   guard.Handle
	decision headgate.Decision
}

// New returns a Stage, or the first fault of the configuration.
func New(c Config) (*Stage, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	classes, err := indexClasses(c.Classes, c.Folds)
	if err != nil {
		return nil, fmt.Errorf("throttler: Config.Classes: %w", err)
	}
	t, err := throttle.New(c.Limits)
	if err != nil {
		return nil, err //nolint:wrapcheck // The error names the field already.
	}
	shared := &service{clock: c.Clock, timers: wheel.NewTimers(c.Clock), throttler: t}
	shared.tenants, shared.routes, shared.numbers = newNames(4096), newNames(4096), newNames(4096)
	return &Stage{service: shared, config: c, classes: classes}, nil
}

// With returns a Stage with another configuration and the same service, for the next guard.Config.
// Requests keep their places. The limits change when a guard begins to use the new Stage (Apply), so a
// reload that is given up changes nothing. The Clock stays.
func (s *Stage) With(c Config) (*Stage, error) {
	c.Clock = s.clock
	if err := c.check(); err != nil {
		return nil, err
	}
	classes, err := indexClasses(c.Classes, c.Folds)
	if err != nil {
		return nil, fmt.Errorf("throttler: Config.Classes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions++
	return &Stage{service: s.service, config: c, classes: classes, version: s.versions}, nil
}

// Config returns the configuration, with its defaults.
func (s *Stage) Config() Config { return s.config }

// Rule implements guard.Stage.
func (s *Stage) Rule() guard.Rule {
	return guard.Rule{Rule: rule.Rule{Name: Name, Key: []rule.Part{s.config.Tenant}}, Mode: s.config.Mode}
}

// Facts implements guard.Stage.
func (s *Stage) Facts() guard.Facts {
	return guard.Facts{
		Request: s.config.Tenant.Needs() | rule.NeedIP | s.classNeeds(), Answer: []string{FieldWork}, Private: []string{FieldWork},
		Headers: []string{FieldCriticality, FieldTimeout, fieldGRPCTimeout},
	}
}

// now returns the time since the origin of the clock.
func (s *service) now() headgate.Instant { return headgate.Instant(s.clock.Now()) }

// Enter implements guard.Stage.
func (s *Stage) Enter(p *guard.Pass) headgate.Decision {
	var room [4]resumption
	s.mu.Lock()
	now := s.now()
	e := s.entry()
	s.read(e, p, now)
	v := s.throttler.Arrive(now, &e.Request)
	d := decision(v, &e.Request)
	switch v {
	case headgate.Deny:
		s.stats.refused(&e.Request)
		s.release(e)
	case headgate.Wait:
		s.queue.add(e)
		s.timers.Start(&e.timer, s.throttler.Patience(now, &e.Request))
		p.Value = e
	case headgate.Allow:
		p.Value = e
	}
	ended := s.next(now, room[:0])
	s.mu.Unlock()
	resume(ended)
	return d
}

// read takes the facts from a request.
func (s *Stage) read(e *entry, p *guard.Pass, now headgate.Instant) {
	req, c := p.Request, &s.config
	trusted := c.Identity != nil && c.Identity.Trusts(req.IP)
	e.handle, e.since = p.Handle(), now
	e.call = callTimeout(req)
	e.Class, e.Deadline = s.classOf(req, trusted, &s.found), now.Add(c.timeLeft(p, trusted, e.call))
	s.text = appendRoute(s.text[:0], req.Method, req.Path)
	e.Route = s.routes.intern(s.text)
	s.text = s.text[:0]
	if c.Tenant != (rule.Part{}) {
		s.text, _ = c.Tenant.AppendClient(s.text, req)
	}
	e.Tenant = s.tenants.intern(s.text)
}

// decision describes a verdict.
func decision(v headgate.Verdict, r *throttle.Request) headgate.Decision {
	switch v {
	case headgate.Allow:
		return headgate.Decision{Reason: headgate.WithinLimit}
	case headgate.Wait:
		return headgate.Decision{Verdict: headgate.Wait, Reason: headgate.Scheduled}
	default:
		return headgate.Decision{Verdict: headgate.Deny, Reason: r.Refusal, RetryAfter: r.RetryAfter}
	}
}

// next lists the requests whose wait has ended. The caller holds mu, and resumes them later.
func (s *service) next(now headgate.Instant, list []resumption) []resumption {
	for r, v := s.throttler.Next(now); r != nil; r, v = s.throttler.Next(now) {
		e, ok := r.Owner.(*entry)
		if !ok {
			continue
		}
		s.timers.Stop(&e.timer)
		if s.queue.remove(e); v == headgate.Deny {
			s.stats.refused(r)
		} else {
			s.stats.waited(now.Sub(e.since))
		}
		list = append(list, resumption{e.handle, decision(v, r)})
	}
	return list
}

// resume resumes requests, without the lock.
func resume(ended []resumption) {
	for _, r := range ended {
		r.handle.Resume(r.decision)
	}
}

// Forward implements guard.ForwardStage: the service gets the class and the time that is left. A
// grpc-timeout is shortened by the wait alone, because a stream may take longer than MaxDeadline. From
// now on, the probe of a hang can be ended.
func (s *Stage) Forward(p *guard.Pass) {
	e, ok := p.Value.(*entry)
	if !ok {
		return
	}
	s.mu.Lock()
	now := s.now()
	class, left, call := e.Class, e.Deadline.Sub(now), ""
	s.text = strconv.AppendInt(s.text[:0], max(left.Milliseconds(), 1), 10)
	number := s.numbers.intern(s.text)
	if e.call > 0 {
		s.text = appendCallTimeout(s.text[:0], e.call-now.Sub(e.since))
		call = s.numbers.intern(s.text)
	}
	left, e.watched = s.throttler.Probe(now, &e.Request, false)
	if e.watched = e.watched && s.config.Mode == guard.Enforce; e.watched {
		e.again = left
		s.timers.Start(&e.timer, left)
	}
	watched := e.watched
	s.mu.Unlock()
	if watched {
		p.Ends()
	}
	p.AddHeader(FieldCriticality, class.String())
	p.AddHeader(FieldTimeout, number)
	if call != "" {
		p.AddHeader(fieldGRPCTimeout, call)
	}
}

// Stream implements guard.StreamStage.
func (s *Stage) Stream(p *guard.Pass) {
	e, ok := p.Value.(*entry)
	if !ok {
		return
	}
	if s.config.CountStreams {
		s.mu.Lock()
		e.stream = true
		s.throttler.Begins(s.now(), &e.Request, false)
		s.mu.Unlock()
		return
	}
	s.leave(e, throttle.Ended{Lesson: throttle.LearnNothing}, false)
}

// Answers implements guard.AnswerStage. An answer may take long, and its header ends a hang.
func (s *Stage) Answers(p *guard.Pass, status int) {
	e, ok := p.Value.(*entry)
	if !ok || !answers(status) {
		return
	}
	var room [4]resumption
	s.mu.Lock()
	now := s.now()
	s.throttler.Begins(now, &e.Request, true)
	list := s.next(now, room[:0])
	s.mu.Unlock()
	resume(list)
}

// Leave implements guard.Stage.
func (s *Stage) Leave(p *guard.Pass, o *guard.Outcome) {
	if e, ok := p.Value.(*entry); ok {
		s.leave(e, s.config.endedBy(o), true)
	}
}

// leave ends a request in the throttler. last: the entry may serve another request.
func (s *service) leave(e *entry, ended throttle.Ended, last bool) {
	var room [4]resumption
	s.mu.Lock()
	now := s.now()
	if e.queued || e.watched {
		s.timers.Stop(&e.timer)
	}
	if e.queued {
		s.queue.remove(e)
	}
	if e.stream {
		ended.Lesson = throttle.LearnNothing
	}
	if elapsed := e.Taken(now); elapsed > 0 && ended.Lesson == throttle.LearnAll {
		s.stats.answered(&e.Request, ended, elapsed)
	}
	s.throttler.Leave(now, &e.Request, ended)
	if last {
		s.release(e)
	}
	list := s.next(now, room[:0])
	s.mu.Unlock()
	resume(list)
}

// expire refuses a queued request whose wait is over, ends a probe whose time is over, and asks again later for
// another one. A timer that fires late may find another request in the entry.
func (s *service) expire(e *entry) {
	s.mu.Lock()
	now := s.now()
	if e.watched {
		s.endProbe(now, e)
		return
	}
	left := s.throttler.Patience(now, &e.Request)
	if e.queued && left > 0 {
		s.timers.Start(&e.timer, left)
	}
	if !e.queued || left > 0 {
		s.mu.Unlock()
		return
	}
	s.throttler.Expire(now, &e.Request)
	var room [4]resumption
	list := s.next(now, room[:0])
	s.mu.Unlock()
	resume(list)
}

// errUnanswered is the cause with which the context of a probe ends.
var errUnanswered = errors.New("throttler: the service hangs, and the request is no longer tried: retry later")

// endProbe ends the context of a probe, so that the next one goes when this one has left. The caller holds mu.
func (s *service) endProbe(now headgate.Instant, e *entry) {
	handle := e.handle
	left, probe := s.throttler.Probe(now, &e.Request, !handle.Receiving())
	if probe && left > 0 {
		s.timers.Start(&e.timer, min(left, max(e.again, time.Millisecond)))
	}
	s.mu.Unlock()
	if probe && left <= 0 {
		handle.End(errUnanswered)
	}
}

// mostFree bounds the free entries that the stage keeps.
const mostFree = 4096

// entry returns a free entry. The caller holds mu.
func (s *service) entry() *entry {
	e := s.free
	if e == nil {
		e = new(entry)
		e.Owner = e
		e.timer.Fire = func() { s.expire(e) }
		return e
	}
	s.free, e.next = e.next, nil
	s.freed--
	return e
}

// release makes an entry free. The caller holds mu.
func (s *service) release(e *entry) {
	e.handle, e.stream, e.watched = guard.Handle{}, false, false
	if s.freed < mostFree {
		e.next, s.free = s.free, e
		s.freed++
	}
}
