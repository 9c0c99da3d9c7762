package ruletest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/sim"
	"github.com/headgate/headgate/middleware/httplimit"
)

// start is the time at which each test begins: a full hour, so that fixed windows begin with the test.
func start() headgate.Instant {
	return headgate.Instant(time.Date(2000, time.January, 1, 1, 0, 0, 0, time.UTC).UnixNano())
}

// statusDropped is what the access log of the proxy has for a request that gets no answer.
const statusDropped = 444

// mostDifferences bounds the differences of one test.
const mostDifferences = 20

// Runner makes the requests of tests.
type Runner struct {
	Config *config.Config
	// Fill replaces parts of the values of header fields, if it is not nil.
	Fill func(value string) string
	// Adapt changes the configuration of the guard, if it is not nil.
	Adapt func(*guard.Config)
}

// Difference is an answer that a line does not expect.
type Difference struct {
	Line int
	Text string
}

// Run makes the requests of a test, with empty counters, and returns the differences and the number of requests. The error means that a
// request could not be made, or that ctx has ended.
func (r *Runner) Run(ctx context.Context, test *Test) (differences []Difference, requests int, err error) {
	t := &trial{Runner: r, steps: test.steps, ctx: ctx, time: sim.NewTime(start())}
	t.style, _ = fields.ParseStyle(string(r.Config.Proxy.HeaderStyle)) // The configuration was checked.
	own := r.Config.InMemory()
	if own.Throttle != nil {
		throttle := *own.Throttle
		throttle.Clock = engine.Clock{Time: t.time}
		own.Throttle = &throttle
	}
	t.guard, err = explain.NewGuard(own, t.time.Now, func(c *guard.Config) {
		if c.State = guard.NewStateAt(engine.Clock{Time: t.time}); r.Adapt != nil {
			r.Adapt(c)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	t.next()
	t.time.Run(func() bool { return t.err == nil && ctx.Err() == nil })
	if t.err == nil {
		t.err = ctx.Err()
	}
	return t.differences, t.requests, t.err
}

// trial is one run of a test.
type trial struct {
	*Runner

	steps []step          // that are left
	done  int             // requests of the first of them
	ctx   context.Context //nolint:containedctx // because the trial lives no longer than Run.
	style httplimit.Style
	time  *sim.Time
	guard *guard.Guard

	requests    int
	differences []Difference
	err         error
}

// next goes on with the next step. A request follows the answer to the one before, or its start if the service takes time to answer.
func (t *trial) next() {
	if len(t.steps) == 0 || t.err != nil {
		return
	}
	s := &t.steps[0]
	if s.method == "" {
		t.steps = t.steps[1:]
		at := t.time.Now().Add(s.pause)
		if !s.at.IsZero() {
			at = headgate.Instant(s.at.UnixNano())
		}
		if at < t.time.Now() {
			now := t.time.Now().Time().UTC().Format(time.RFC3339)
			t.err = fmt.Errorf("line %d: it is %s already: times in a test only go on", s.line, now)
			return
		}
		t.time.At(at, t.next)
		return
	}
	if t.done++; t.done >= s.times {
		t.steps, t.done = t.steps[1:], 0
	}
	t.time.At(t.time.Now(), func() { t.send(s) })
}

// send makes a request.
func (t *trial) send(s *step) {
	r, err := t.request(s)
	if err != nil {
		t.err = fmt.Errorf("line %d: %w", s.line, err)
		return
	}
	t.requests++
	x := &exchange{trial: t, step: s, request: r, answer: httptest.NewRecorder(), ticket: new(guard.Ticket), began: t.time.Now()}
	x.ResolvePath, x.CORS = true, t.Config.CORS // The proxy does the same.
	x.OneValue = t.Config.Proxy.Upstream != nil // Without an upstream, the rules are those of a program, as middleware reads requests.
	x.Use(x.ticket)
	x.run()
}

// exchange is one request and its answer.
type exchange struct {
	httplimit.Exchange

	*trial

	step    *step
	request *http.Request
	answer  *httptest.ResponseRecorder
	ticket  *guard.Ticket
	began   headgate.Instant
	waited  time.Duration
	decided string // what decided, in words
}

func (x *exchange) run() {
	if err := x.Admit(x.guard, x.request); err != nil {
		if x.Fail(x.answer, err) {
			x.err = fmt.Errorf("line %d: the request could not be decided: %w", x.step.line, err)
			return
		}
		x.decided = " (" + err.Error() + ")"
		x.compare(nil)
		x.next()
		return
	}
	if closest := x.Answer.Closest(); closest != nil {
		x.decided = " (" + closest.Decision.Reason.String() + " by " + nameOf(closest) + ")"
	}
	if x.Answer.Verdict == headgate.Wait {
		x.ticket.WaitFunc(x.act)
		return
	}
	x.act(x.Answer.Verdict)
}

func nameOf(r *guard.Result) string {
	if r.Stage != "" || r.Rule == nil {
		return r.Stage
	}
	return r.Rule.Name
}

// act refuses the request, or lets the service answer it.
func (x *exchange) act(v headgate.Verdict) {
	x.waited = x.time.Now().Sub(x.began)
	dropped := v == headgate.Deny && x.Answer.Drops()
	if !dropped {
		x.Announce(x.style, x.answer.Header())
	}
	if v == headgate.Deny {
		if dropped {
			x.answer.WriteHeader(statusDropped)
		} else {
			x.Refuse(x.answer)
		}
		x.Done(guard.Refused)
		x.compare(nil)
		x.next()
		return
	}
	forward := x.Forward(x.guard, x.request)
	outcome := x.serve(forward.Header)
	x.CORS.Expose(fields.Map(x.answer.Header()))
	x.compare(forward.Header)
	if x.step.lasts == 0 {
		x.ticket.Done(outcome)
	} else {
		x.time.At(x.time.Now().Add(x.step.lasts), func() { x.ticket.Done(outcome) })
	}
	x.next()
}

// serve is the service: it answers what the request asks it to, in fields whose names begin with Answer-.
func (x *exchange) serve(h http.Header) guard.Outcome {
	status, stated, body := http.StatusOK, http.Header{}, int64(0)
	for name, lines := range h {
		switch answer, found := strings.CutPrefix(name, "Answer-"); {
		case found && answer == "Status":
			if n, err := strconv.Atoi(lines[0]); err == nil && n >= 200 && n <= 599 {
				status = n
			}
		case found && answer == "Body":
			if n, err := strconv.ParseInt(lines[0], 10, 64); err == nil && n > 0 {
				body = n
			}
		case found:
			stated[answer] = lines
			x.answer.Header()[answer] = lines
		}
	}
	x.answer.WriteHeader(status)
	return guard.Outcome{
		End: guard.Answered, Status: status, Duration: x.waited + x.step.lasts, Sent: body,
		Header: func(name string) (string, bool) {
			lines, found := stated[name]
			return strings.Join(lines, ", "), found
		},
	}
}
