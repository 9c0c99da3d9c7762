package guard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
)

// scripted is a Stage that decides as the test says, and records its calls.
type scripted struct {
	name   string
	decide headgate.Decision
	mode   guard.Mode
	facts  guard.Facts
	enter  func(*guard.Pass)
	leave  func() // at the beginning of Leave

	reports *[]string
	handle  guard.Handle
	ended   []guard.Outcome
}

func (s *scripted) Rule() guard.Rule {
	return guard.Rule{Rule: rule.Rule{Name: s.name}, Mode: s.mode, Exceed: guard.Exceed{Status: 503}}
}

func (s *scripted) Facts() guard.Facts { return s.facts }

func (s *scripted) Enter(p *guard.Pass) headgate.Decision {
	*s.reports = append(*s.reports, "enter "+s.name)
	s.handle = p.Handle()
	if s.enter != nil {
		s.enter(p)
	}
	return s.decide
}

func (s *scripted) Leave(_ *guard.Pass, o *guard.Outcome) {
	if s.leave != nil {
		s.leave()
	}
	*s.reports = append(*s.reports, "leave "+s.name)
	s.ended = append(s.ended, *o)
}

func (s *scripted) Stream(*guard.Pass) { *s.reports = append(*s.reports, "stream "+s.name) }

var (
	admits  = headgate.Decision{Reason: headgate.WithinLimit}
	holds   = headgate.Decision{Verdict: headgate.Wait, Reason: headgate.Scheduled}
	refuses = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.QueueFull}
)

// staged makes a guard with a rule of 5 a minute and two scripted stages.
func staged(t *testing.T, first, second *scripted) (*guard.Guard, *[]string) {
	t.Helper()
	reports := new([]string)
	first.name, first.reports, second.name, second.reports = "first", reports, "second", reports
	g, _ := newGuard(t, guard.Config{
		Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(5))}, Stages: []guard.Stage{first, second},
	})
	return g, reports
}

func admit(ctx context.Context, t *testing.T, g *guard.Guard, ticket *guard.Ticket) headgate.Verdict {
	t.Helper()
	if ticket.Answer == nil {
		ticket.Answer = new(guard.Answer)
	}
	if err := g.Admit(ctx, request("/a", "x"), ticket); err != nil {
		t.Fatal(err)
	}
	return ticket.Answer.Verdict
}

func wantTold(t *testing.T, reports *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*reports, want) {
		t.Errorf("the stages were told %q, want %q", *reports, want)
	}
}

// left gives what remains of the rule's limit.
func left(t *testing.T, g *guard.Guard) int64 {
	t.Helper()
	return decide(t, g, request("/a", "x")).Results[0].Decision.Remaining
}

// Stages are entered in order and left in reverse order, once.
func TestStagesInOrder(t *testing.T) {
	first, second := &scripted{decide: admits}, &scripted{decide: admits}
	g, reports := staged(t, first, second)
	var ticket guard.Ticket
	if v := admit(t.Context(), t, g, &ticket); v != headgate.Allow {
		t.Fatalf("verdict %v", v)
	}
	if !ticket.Forward() {
		t.Error("nobody waits for the end")
	}
	ticket.Stream()
	for range 3 {
		ticket.Done(guard.Outcome{Status: 418, Header: func(string) (string, bool) { return "7", true }})
	}
	wantTold(t, reports, "enter first", "enter second", "stream first", "stream second", "leave second", "leave first")
	if o := first.ended[0]; o.Status != 418 || o.End != guard.Answered {
		t.Errorf("the outcome is %+v", o)
	}
	if n := left(t, g); n != 3 {
		t.Errorf("%d units remain, want 3: the request was made", n)
	}
}

// When a stage refuses, the units of the rules and the slots of earlier stages are returned.
func TestStageRefuses(t *testing.T) {
	first, second := &scripted{decide: admits}, &scripted{decide: refuses}
	g, reports := staged(t, first, second)
	var ticket guard.Ticket
	if v := admit(t.Context(), t, g, &ticket); v != headgate.Deny {
		t.Fatalf("verdict %v", v)
	}
	if c := ticket.Answer.Closest(); c.Stage != "second" || c.Policy != "second" || c.Rule.Exceed.Status != 503 || c.Decision.Reason != headgate.QueueFull {
		t.Errorf("refused by %+v", c)
	}
	ticket.Done(guard.Outcome{End: guard.Refused})
	wantTold(t, reports, "enter first", "enter second", "leave first")
	if n := left(t, g); n != 4 {
		t.Errorf("%d units remain, want 4: the request was not made", n)
	}
}

// A request that the rules refuse enters no stage.
func TestRulesRefuseBeforeStages(t *testing.T) {
	first, second := &scripted{decide: admits}, &scripted{decide: admits}
	g, reports := staged(t, first, second)
	for range 5 {
		decide(t, g, request("/a", "x"))
	}
	var ticket guard.Ticket
	if v := admit(t.Context(), t, g, &ticket); v != headgate.Deny {
		t.Fatalf("verdict %v", v)
	}
	ticket.Done(guard.Outcome{End: guard.Refused})
	wantTold(t, reports)
}

// A stage holds a request and resumes it. Later stages still decide.
func TestStageHolds(t *testing.T) {
	for name, c := range map[string]struct {
		resume, later headgate.Decision
		verdict       headgate.Verdict
		reports       []string
		left          int64
	}{
		"goes on":               {admits, admits, headgate.Allow, []string{"enter first", "enter second", "leave second", "leave first"}, 3},
		"a later stage refuses": {admits, refuses, headgate.Deny, []string{"enter first", "enter second", "leave first"}, 4},
		"refused":               {refuses, admits, headgate.Deny, []string{"enter first", "leave first"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			for _, called := range []bool{false, true} {
				first, second := &scripted{decide: holds}, &scripted{decide: c.later}
				g, reports := staged(t, first, second)
				var ticket guard.Ticket
				if v := admit(t.Context(), t, g, &ticket); v != headgate.Wait {
					t.Fatalf("verdict %v", v)
				}
				var got headgate.Verdict
				if called {
					calls := 0
					ticket.WaitFunc(func(v headgate.Verdict) { got, calls = v, calls+1 })
					if !first.handle.Resume(c.resume) || first.handle.Resume(c.resume) || calls != 1 {
						t.Errorf("resumed in another number than once, %d calls", calls)
					}
				} else {
					go first.handle.Resume(c.resume)
					var err error
					if got, err = ticket.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got != c.verdict {
					t.Errorf("%v, want %v", got, c.verdict)
				}
				ticket.Done(guard.Outcome{})
				wantTold(t, reports, c.reports...)
				if n := left(t, g); n != c.left {
					t.Errorf("%d units remain, want %d", n, c.left)
				}
				if first.handle.Resume(admits) || first.handle.End(errors.ErrUnsupported) {
					t.Error("the handle reaches a request that has ended")
				}
			}
		})
	}
}

// A request that leaves while a stage holds it leaves the stages, and its units are returned.
func TestLeavesWhileHeld(t *testing.T) {
	first, second := &scripted{decide: admits}, &scripted{decide: holds}
	g, reports := staged(t, first, second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var ticket guard.Ticket
	admit(ctx, t, g, &ticket)
	if v, err := ticket.Wait(ctx); v != headgate.Deny || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", v, err)
	}
	ticket.Done(guard.Outcome{End: guard.ClientLeft})
	wantTold(t, reports, "enter first", "enter second", "leave second", "leave first")
	if n := left(t, g); n != 4 {
		t.Errorf("%d units remain, want 4", n)
	}
	*reports = nil
	admit(t.Context(), t, g, &ticket) // The caller only calls Done.
	ticket.WaitFunc(func(headgate.Verdict) { t.Error("called after Done") })
	ticket.Done(guard.Outcome{End: guard.ClientLeft})
	wantTold(t, reports, "enter first", "enter second", "leave second", "leave first")
	if second.handle.Resume(admits) {
		t.Error("resumed after Done")
	}
	if n := left(t, g); n != 3 {
		t.Errorf("%d units remain, want 3", n)
	}
}

// A wait that would end after the caller's deadline is refused.
func TestHeldBeyondTheDeadline(t *testing.T) {
	late := holds
	late.RetryAfter = time.Hour
	first, second := &scripted{decide: late}, &scripted{decide: admits}
	g, reports := staged(t, first, second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var ticket guard.Ticket
	if v := admit(ctx, t, g, &ticket); v != headgate.Deny || ticket.Answer.Closest().Decision.Reason != headgate.WaitTooLong {
		t.Errorf("%v for %v", v, ticket.Answer.Closest().Decision.Reason)
	}
	ticket.Done(guard.Outcome{})
	wantTold(t, reports, "enter first", "leave first")
}

// A stage in shadow refuses and holds nothing.
func TestStageInShadow(t *testing.T) {
	first, second := &scripted{decide: refuses, mode: guard.Shadow}, &scripted{decide: holds, mode: guard.Shadow}
	g, reports := staged(t, first, second)
	var ticket guard.Ticket
	if v := admit(t.Context(), t, g, &ticket); v != headgate.Allow || second.handle.Resume(refuses) {
		t.Errorf("verdict %v", v)
	}
	ticket.Done(guard.Outcome{})
	wantTold(t, reports, "enter first", "enter second", "leave second")
}

// A stage adds headers and ends the context of a request.
func TestStageActs(t *testing.T) {
	facts := guard.Facts{Headers: []string{"X-Queue"}, Answer: []string{"X-Cost"}, Ends: true}
	first, second := &scripted{decide: admits, facts: facts}, &scripted{decide: admits}
	first.enter = func(p *guard.Pass) { p.AddHeader("X-Queue", "slow") }
	g, _ := staged(t, first, second)
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	if h := ticket.Headers(); len(h) != 1 || h[0] != (guard.Header{Name: "X-Queue", Value: "slow"}) {
		t.Errorf("headers %v", h)
	}
	if !slices.Contains(g.Marks(), "X-Queue") || !slices.Contains(g.Marks(), "X_queue") {
		t.Errorf("the marks are %v: a client could set the header", g.Marks())
	}
	ctx := ticket.Context(t.Context())
	if !first.handle.End(errors.ErrUnsupported) || !errors.Is(context.Cause(ctx), errors.ErrUnsupported) {
		t.Errorf("the context ended with %v", context.Cause(ctx))
	}
	ticket.Done(guard.Outcome{})
}

// A request waits for its departure first, and then for a slot; a reload changes neither.
func TestWaitsForBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := atmost.New(1, 1)
		limit := byClient(t, "a", "/a")
		limit.Policies = []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 1, Per: time.Second, Burst: 9}}}
		c := guard.Config{Rules: []guard.Rule{limit}, Stages: []guard.Stage{slots}}
		g, _ := newGuard(t, c)
		c.Store = g.Store()
		began := time.Now()
		var busy, ticket guard.Ticket
		if v := admit(t.Context(), t, g, &busy); v != headgate.Allow {
			t.Fatalf("verdict %v", v)
		}
		if v := admit(t.Context(), t, g, &ticket); v != headgate.Wait {
			t.Fatalf("verdict %v", v)
		}
		if err := g.Reload(c); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Second, func() { busy.Done(guard.Outcome{}) })
		if v, err := ticket.Wait(t.Context()); v != headgate.Allow || err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("%v, %v after %v, want allow after 5s", v, err, time.Since(began))
		}
		ticket.Done(guard.Outcome{})
		if used, peak, waiting := slots.Slots(); used != 0 || peak != 1 || waiting != 0 {
			t.Errorf("%d used, %d at once, %d wait", used, peak, waiting)
		}
	})
}

// Without stages, a Ticket keeps nothing after Forward.
func TestTicketWithoutStages(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(5))}})
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	if ticket.Forward() {
		t.Error("somebody waits for the end")
	}
	ticket.Done(guard.Outcome{})
	if err := g.Admit(t.Context(), request("/a", "y"), &ticket); err == nil || !strings.Contains(err.Error(), "set Ticket.Answer") {
		t.Errorf("without an Answer: %v", err)
	}
	a := new(guard.Answer)
	req := request("/a", "y")
	if n := testing.AllocsPerRun(100, func() {
		ticket.Answer = a
		if err := g.Admit(t.Context(), req, &ticket); err != nil {
			t.Fatal(err)
		}
		ticket.Forward()
	}); n != 0 && !race.On {
		t.Errorf("%v allocations", n)
	}
}

// The names of stages are unique.
func TestStageNames(t *testing.T) {
	for _, name := range []string{"", "a", guard.FairShareName, "first"} {
		reports := new([]string)
		g, _ := newGuard(t, guard.Config{})
		_, err := guard.New(guard.Config{
			Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(5))}, Store: g.Store(),
			Stages: []guard.Stage{&scripted{name: "first", reports: reports}, &scripted{name: name, reports: reports}},
		})
		if err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
