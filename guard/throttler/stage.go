package throttler

import (
	"errors"
	"fmt"
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
	tells   bool        // Config.Tenant tells tenants apart
	version uint64      // The latest version that a guard uses decides on the limits.
}

// service is what all stages before one service have in common.
type service struct {
	clock  Clock
	timers *wheel.Timers

	mu        sync.Mutex // Guards the fields below. It is held for a few steps.
	throttler *throttle.Throttler
	latest    headgate.Instant // of all calls: guards read the time before they get the lock
	versions  uint64           // of all stages
	applied   uint64           // the version whose limits the throttler has
	tenants   names
	routes    names
	numbers   names  // milliseconds in headers
	left      number // the last of them
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
	sent           times         // for the service, if it did not wait
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
	return &Stage{service: shared, config: c, classes: classes, tells: c.Tenant != rule.Part{}}, nil
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
	return &Stage{service: s.service, config: c, classes: classes, tells: c.Tenant != rule.Part{}, version: s.versions}, nil
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

// now returns the time since the origin of the clock. The caller holds mu.
func (s *service) now() headgate.Instant { return s.advance(s.clock.Now()) }

// at is now in a call of a guard, without a read of the clock.
func (s *service) at(p *guard.Pass) headgate.Instant { return s.advance(p.Now(s.clock)) }

func (s *service) advance(to time.Duration) headgate.Instant {
	s.latest = max(s.latest, headgate.Instant(to))
	return s.latest
}

// Enter implements guard.Stage.
func (s *Stage) Enter(p *guard.Pass) headgate.Decision {
	s.mu.Lock()
	now := s.at(p)
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
		if _, probe := s.throttler.Probe(now, &e.Request, false); !probe {
			e.sent = s.timesOf(e, now)
		}
	}
	s.unlock(now)
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
	if e.Tenant = ""; s.tells {
		s.text, _ = c.Tenant.AppendClient(s.text[:0], req)
		e.Tenant = s.tenants.intern(s.text)
	}
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

// unlock releases mu, and resumes the requests whose wait has ended.
func (s *service) unlock(now headgate.Instant) {
	if s.throttler.Waits() {
		s.resumeNext(now)
		return
	}
	s.mu.Unlock()
}

// resumeNext is the rest of unlock. Its array is cleared at each call, which costs too much where no request waits.
func (s *service) resumeNext(now headgate.Instant) {
	var room [4]resumption
	list := s.next(now, room[:0])
	s.mu.Unlock()
	resume(list)
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
	sent := e.sent
	if sent.left == "" || !p.Prompt() {
		sent = s.sends(p, e)
	}
	p.AddHeader(FieldCriticality, e.Class.String())
	p.AddHeader(FieldTimeout, sent.left)
	if sent.call != "" {
		p.AddHeader(fieldGRPCTimeout, sent.call)
	}
}

// sends returns the times for the service of a request that has waited, and of the probe of a hang.
func (s *Stage) sends(p *guard.Pass, e *entry) times {
	s.mu.Lock()
	now := s.at(p)
	sent := s.timesOf(e, now)
	var left time.Duration
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
	return sent
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
		s.throttler.Begins(s.at(p), &e.Request, false)
		s.mu.Unlock()
		return
	}
	s.leave(p, e, throttle.Ended{Lesson: throttle.LearnNothing}, false)
}

// Answers implements guard.AnswerStage. An answer may take long, and its header ends a hang.
func (s *Stage) Answers(p *guard.Pass, status int) {
	e, ok := p.Value.(*entry)
	if !ok || !answers(status) {
		return
	}
	s.mu.Lock()
	now := s.at(p)
	s.throttler.Begins(now, &e.Request, true)
	s.unlock(now)
}

// Leave implements guard.Stage.
func (s *Stage) Leave(p *guard.Pass, o *guard.Outcome) {
	if e, ok := p.Value.(*entry); ok {
		s.leave(p, e, s.config.endedBy(o), true)
	}
}

// leave ends a request in the throttler. last: the entry may serve another request.
func (s *service) leave(p *guard.Pass, e *entry, ended throttle.Ended, last bool) {
	s.mu.Lock()
	now := s.at(p)
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
	s.unlock(now)
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
	s.unlock(now)
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
	e.handle, e.stream, e.watched, e.sent = guard.Handle{}, false, false, times{}
	if s.freed < mostFree {
		e.next, s.free = s.free, e
		s.freed++
	}
}
