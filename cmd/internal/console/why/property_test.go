package why

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/middleware/httplimit"
)

// instance is a guard with the component that explains its decisions.
type instance struct {
	*Component

	config *config.Config
	guard  *guard.Guard
	store  *open.Opened
}

// newInstance makes an instance of a configuration. adapt may change that of the guard.
func newInstance(t *testing.T, text string, adapt func(*guard.Config)) *instance {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return instanceOf(t, c, adapt)
}

func instanceOf(t *testing.T, c *config.Config, adapt func(*guard.Config)) *instance {
	t.Helper()
	store, err := open.Store(c, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	described, err := open.GuardConfig(c, store)
	if err != nil {
		t.Fatal(err)
	}
	if adapt != nil {
		adapt(&described)
	}
	g, err := guard.New(described)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{config: c, guard: g, store: store}
	i.Component = New(slog.New(slog.DiscardHandler), Source{
		Name: func() string { return "test" }, Config: func() *config.Config { return c }, Guard: g, Store: store,
	})
	return i
}

// decide sends a request as the proxy does.
func (i *instance) decide(t *testing.T, order *admin.ExplainOrder) (*httplimit.Exchange, error) {
	t.Helper()
	method, target, _ := strings.Cut(order.Request, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	r.RemoteAddr = order.Address + ":40000"
	maps.Copy(r.Header, order.Headers)
	x := &httplimit.Exchange{ResolvePath: true, OneValue: true}
	err := x.Admit(i.guard, r)
	return x, err
}

// said explains a request.
func (i *instance) said(t *testing.T, order *admin.ExplainOrder) *admin.Why {
	t.Helper()
	copied := *order
	answer, failure := i.Explain(t.Context(), &copied)
	if failure != nil {
		t.Fatal(failure.Error)
	}
	return answer
}

// story is a random configuration with random traffic.
type story struct {
	*instance

	seed     uint64
	rnd      *rand.Rand
	inFlight []*guard.Ticket
	seen     map[string]int
}

func (s *story) pick(all ...string) string { return all[s.rnd.IntN(len(all))] }

// rules writes random rules.
func (s *story) rules() string {
	var b strings.Builder
	for n := range 1 + s.rnd.IntN(4) {
		algorithm := s.pick("token_bucket", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window")
		bucket := strings.HasSuffix(algorithm, "bucket")
		fmt.Fprintf(&b, "  - name: r%d\n    match: {path: \"%s\"}\n    key: [%s]\n    algorithm: %s\n    limits: [%d/%ds, %d/1m]\n", n,
			s.pick("/**", "/a/*", "/a/b", "/**"), s.pick("header:X-Client-Id", "ip", "header:X-Client-Id, ip"), algorithm, 1+s.rnd.IntN(5),
			1+s.rnd.IntN(3), 4+s.rnd.IntN(20))
		fmt.Fprintf(&b, "    mode: %s\n    missing: %s\n", s.pick("enforce", "enforce", "enforce", "shadow"), s.pick("shared", "skip", "refuse"))
		waits := algorithm == "leaky_bucket"
		switch s.rnd.IntN(5) {
		case 0:
			if bucket {
				fmt.Fprintf(&b, "    on_exceed: {action: delay, max_wait: %ds, max_waiters: 3}\n", 1+s.rnd.IntN(3))
				waits = true
			}
		case 1:
			b.WriteString("    on_exceed: {action: degrade, header: X-Level, value: low, hard: 600/1m}\n")
		case 2:
			b.WriteString("    on_exceed: {action: redirect, location: /busy}\n")
		}
		if s.rnd.IntN(3) == 0 {
			fmt.Fprintf(&b, "    ban: {after: %d/10s, for: 20s}\n", 3+s.rnd.IntN(6))
		} else if s.rnd.IntN(3) == 0 && !waits {
			fmt.Fprintf(&b, "    in_flight: %d\n", 1+s.rnd.IntN(3))
		}
		if s.rnd.IntN(3) == 0 && !strings.Contains(b.String()[strings.LastIndex(b.String(), "key:"):], "[ip") {
			fmt.Fprintf(&b, "    overrides: {c0: {limits: [%d/1s]}, c1: {unlimited: true}}\n", 1+s.rnd.IntN(9))
		}
	}
	return b.String()
}

// newStory makes the configuration. It gives nil for one that the checks of configurations refuse.
func newStory(t *testing.T, seed uint64, seen map[string]int) *story {
	t.Helper()
	s := &story{seed: seed, rnd: rand.New(rand.NewPCG(seed, 11)), seen: seen}
	text := ""
	if s.rnd.IntN(2) == 0 {
		text += fmt.Sprintf("fair_share: {client: \"header:X-Client-Id\", capacity: %d, cycle: 1s, anonymous: nobody, mode: %s}\n", 1+s.rnd.IntN(8),
			s.pick("enforce", "enforce", "shadow"))
	}
	if s.rnd.IntN(3) == 0 {
		text += fmt.Sprintf("throttle: {concurrency: %d, queue: {max_waiters: %d}}\n", 1+s.rnd.IntN(4), 1+s.rnd.IntN(3))
	}
	if s.rnd.IntN(3) == 0 {
		text += "exempt: [{path: /a/b, methods: [GET]}]\n"
	}
	if s.rnd.IntN(3) == 0 {
		text += "evaluate: independent\n"
	}
	quota := ""
	if s.rnd.IntN(3) == 0 {
		text += "plans: {free: {quotas: {api: [{limit: 12/1d, soft: 50%}]}}, paid: {quotas: {api: [{limit: 6/1h, hard: 9}]}, after: meter}}\n" +
			"default_plan: free\ncustomers: {c1: {plan: paid}}\n"
		quota = "  - {name: quota, match: {path: \"/a/*\"}, key: [\"header:X-Client-Id\"], quota: api}\n"
	}
	percent := 0
	if s.rnd.IntN(3) == 0 {
		percent = 10 + s.rnd.IntN(80)
	}
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text+"rules:\n"+s.rules()+quota))
	if err != nil {
		seen["refused"]++
		return nil
	}
	seen["played"]++
	s.instance = instanceOf(t, c, func(c *guard.Config) {
		if c.FairShare != nil {
			c.FairShare.Seed = 1 + seed
		}
		if r := &c.Rules[0]; percent > 0 && r.Mode == guard.Enforce {
			r.Switch = &guard.Switch{From: guard.Shadow, Percent: percent}
		}
	})
	return s
}

// TestExplanationsAreTrue explains random requests to instances with random traffic, and decides them at the same time: with bans, overrides,
// exempt, modes and parts of keys, fair share, quotas, requests in flight, waits and the throttle.
func TestExplanationsAreTrue(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(race.Fewer(250, 20)) {
		synctest.Test(t, func(t *testing.T) {
			s := newStory(t, seed, seen)
			if s == nil {
				return
			}
			for n := range 40 {
				if s.step(t, n); t.Failed() {
					break
				}
			}
			for len(s.inFlight) > 0 {
				s.end()
			}
			time.Sleep(10 * time.Minute) //nolint:forbidigo // because the bubble of synctest has its own clock.
		})
		if t.Failed() {
			return
		}
	}
	if race.Fewer(0, 1) > 0 { // Few stories do not have each kind.
		return
	}
	if seen["played"] < 150 {
		t.Errorf("only %d configurations were valid, and %d not", seen["played"], seen["refused"])
	}
	for _, kind := range []string{
		"allow", "wait", "deny over_limit", "deny banned", "deny over_share", "deny in_flight", "deny key_missing", "deny throttle_full",
		"deny queue_full", "deny wait_too_long", "exempt", "wait throttle",
	} {
		if seen[kind] < 5 {
			t.Errorf("only %d times: %s", seen[kind], kind)
		}
	}
}

// end ends the oldest request in flight.
func (s *story) end() {
	s.inFlight[0].Done(guard.Outcome{End: guard.Answered, Status: 200, Duration: 20 * time.Millisecond})
	s.inFlight = s.inFlight[1:]
}

// step explains a request, decides it, and compares.
func (s *story) step(t *testing.T, n int) {
	t.Helper()
	time.Sleep(time.Duration(s.rnd.IntN(400)) * time.Millisecond) //nolint:forbidigo // because the bubble of synctest has its own clock.
	for len(s.inFlight) > 0 && s.rnd.IntN(3) == 0 {
		s.end()
	}
	order := &admin.ExplainOrder{
		Request: s.pick("GET", "POST") + " " + s.pick("/a/b", "/a/c", "/d"), Address: s.pick("192.0.2.1", "192.0.2.2"),
		Headers: admin.ExplainHeaders{},
	}
	if s.rnd.IntN(8) > 0 {
		order.Headers["X-Client-Id"] = []string{s.pick("c0", "c1", "c2")}
	}
	said := s.said(t, order)
	x, err := s.decide(t, order)
	if err != nil {
		t.Fatal(err)
	}
	if fault := s.compare(said, &x.Answer); fault != "" {
		t.Errorf("seed %d, request %d, %s %v: %s:\nsaid %+v\ndecided %v %+v", s.seed, n, order.Request, order.Headers, fault, said, x.Answer.Verdict,
			x.Answer.Results)
	}
	switch x.Answer.Verdict {
	case headgate.Wait:
		patience, served := time.Duration(s.rnd.IntN(3000))*time.Millisecond, time.Duration(s.rnd.IntN(500))*time.Millisecond
		go leave(x, patience, served)
		return
	case headgate.Deny:
		x.Done(guard.Refused)
		return
	case headgate.Allow:
	}
	if ticket := x.Detach(); ticket != nil {
		s.inFlight = append(s.inFlight, ticket)
	}
}

// leave waits with a request, and ends it.
func leave(x *httplimit.Exchange, patience, served time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if v, err := x.Wait(ctx); err != nil || v == headgate.Deny {
		x.Done(guard.ClientLeft)
	} else if ticket := x.Detach(); ticket != nil {
		time.Sleep(served) //nolint:forbidigo // because the bubble of synctest has its own clock.
		ticket.Done(guard.Outcome{End: guard.Answered, Status: 200, Duration: served})
	}
}

// compare gives the first difference of an explanation and a decision.
func (s *story) compare(said *admin.Why, a *guard.Answer) string {
	closest := a.Closest()
	if a.Verdict == headgate.Wait && a.Results[len(a.Results)-1].Stage == throttler.Name {
		s.seen["wait throttle"]++
		closest = &a.Results[len(a.Results)-1]
	}
	if a.Exempt {
		s.seen["exempt"]++
	}
	kind := a.Verdict.String()
	if a.Verdict == headgate.Deny {
		kind += " " + closest.Decision.Reason.String()
	}
	s.seen[kind]++
	switch {
	case said.Verdict != a.Verdict.String():
		return "another verdict"
	case a.Verdict == headgate.Allow:
		return s.compareLeft(said, a)
	case said.By != closest.Rule.Name || said.Reason != closest.Decision.Reason.String():
		return "another reason"
	case a.Verdict == headgate.Deny && said.Status != fields.Status(a):
		return "another status"
	case closest.Stage != throttler.Name && said.RetrySeconds != a.RetryAfter().Seconds():
		return "another time"
	}
	for i := range said.Steps {
		if step := &said.Steps[i]; step.Decides && step.Verdict == a.Verdict.String() {
			return ""
		}
	}
	return "no step decides"
}

// compareLeft compares what is left after an allowed request.
func (s *story) compareLeft(said *admin.Why, a *guard.Answer) string {
	for i := range a.Results {
		r := &a.Results[i]
		if r.Stage != "" || r.Decision.Verdict != headgate.Allow || r.Decision.Receipt.Empty() {
			continue
		}
		for _, step := range said.Steps {
			for _, l := range step.Limits {
				if l.Name == r.Policy && step.Name == r.Rule.Name && max(0, l.Remaining-step.Cost) != r.Decision.Remaining && l.Algorithm != "ban" {
					return fmt.Sprintf("%s says %d left with a cost of %d, and the decision %d", l.Name, l.Remaining, step.Cost, r.Decision.Remaining)
				}
			}
		}
	}
	return ""
}
