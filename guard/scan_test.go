package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	models "github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/rule"
)

// byTokens is a rule "a" of a number of tokens a minute, which answers of OpenAI's API state.
func byTokens(t *testing.T, limit int64) guard.Rule {
	t.Helper()
	r := byClient(t, "a", "/v1/*", perMinute(limit))
	r.SettleBody = &models.Settle{API: models.OpenAI}
	r.Estimate = &models.Estimate{BytesPerToken: 4 * models.One, Output: 500, Image: 1000, Fixed: true}
	r.MaxBody = 1 << 20
	return r
}

// asked admits a request with a body, and forwards it.
func asked(t *testing.T, g *guard.Guard, method, body string) *guard.Ticket {
	t.Helper()
	ticket := &guard.Ticket{Answer: new(guard.Answer)}
	req := request("/v1/chat/completions", "x")
	req.Method = method
	g.Begin(ticket.Answer)
	if most := ticket.Answer.BodyBound(req); most > 0 && body != "" {
		n := min(most, int64(len(body)))
		ticket.Answer.ReadBody(req, new(guard.BodyFacts), []byte(body[:n]), n < int64(len(body)))
	}
	if err := g.Admit(t.Context(), req, ticket); err != nil {
		t.Fatal(err)
	}
	return ticket
}

// leftOf gives the units that the rule "a" has left for client x.
func leftOf(t *testing.T, g *guard.Guard) int64 {
	t.Helper()
	a := new(guard.Answer)
	req := request("/v1/chat/completions", "x")
	req.Peek = true
	ticket := &guard.Ticket{Answer: a}
	if err := g.Admit(t.Context(), req, ticket); err != nil {
		t.Fatal(err)
	}
	ticket.Done(guard.Outcome{End: guard.Refused})
	return a.Results[0].Decision.Remaining + 1 // That of the peek itself.
}

const (
	chatRequest = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"How many tokens does this text have, please?"}]}`
	chatAnswer  = `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Ten."}}],` +
		`"usage":{"prompt_tokens":20,"completion_tokens":30,"total_tokens":50}}`
	chatStream = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"Ten is what I think.\"}}],\"usage\":null}\n\n"
	chatUsage  = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":30,\"total_tokens\":50}}\n\n"
)

// TestSettleByBody is a table of answers, and what they cost: want is the cost, or -1 for the estimate.
func TestSettleByBody(t *testing.T) {
	const most = 10_000
	for name, c := range map[string]struct {
		method, kind, coding, body string
		status                     int
		end                        guard.End
		least, want                int64
		cause                      string
	}{
		"JSON":                          {body: chatAnswer, want: 50, cause: "stated"},
		"a stream":                      {kind: "text/event-stream", body: chatStream + chatUsage + "data: [DONE]\n\n", want: 50, cause: "stated"},
		"a client that closes at DONE":  {kind: "text/event-stream", body: chatStream + chatUsage + "data: [DONE]\n\n", end: guard.ClientLeft, want: 50, cause: "stated"},
		"a client that leaves at usage": {kind: "text/event-stream", body: chatStream + chatUsage, end: guard.ClientLeft, want: 50, cause: "aborted"},
		"a stream without usage":        {kind: "text/event-stream", body: chatStream + "data: [DONE]\n\n", want: -1, cause: "no_usage"},
		"JSON without usage":            {body: `{"id":"c"}`, want: -1, cause: "no_usage"},
		"an unknown coding":             {body: "\x1b\x00", coding: "br", want: -1, cause: "encoding"},
		"an error of the service":       {body: `{"error":{}}`, status: 500, want: 0, cause: "none"},
		"a refusal of the service":      {body: `{"error":{}}`, status: 429, want: 0, cause: "none"},
		"no answer":                     {status: 502, end: guard.Failed, want: 0, cause: "none"},
		"GET":                           {method: "GET", body: `{"data":[]}`, want: 0, cause: "none"},
		"an abort before the answer":    {end: guard.ClientLeft, least: 10, want: 40, cause: "aborted"},
		"an abort within a stream":      {kind: "text/event-stream", body: chatStream, end: guard.ClientLeft, least: 11, want: 100, cause: "aborted"},
		"a service that breaks off":     {kind: "text/event-stream", body: chatStream, end: guard.Failed, least: 11, want: 100, cause: "aborted"},
		"a long stream that breaks off": {kind: "text/event-stream", body: strings.Repeat(chatStream, 1000), end: guard.Failed, least: -1, want: -1, cause: "aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byTokens(t, most)}})
			method, kind, status := "POST", "application/json", 200
			if c.method != "" {
				method = c.method
			}
			if c.kind != "" {
				kind = c.kind
			}
			if c.status != 0 {
				status = c.status
			}
			ticket := asked(t, g, method, chatRequest)
			estimate := most - ticket.Answer.Results[0].Decision.Remaining
			if method == "POST" && (estimate < 110 || estimate > 150) {
				t.Fatalf("the estimate is %d: want 100 tokens of output and those of the text", estimate)
			}
			if !ticket.Forward() {
				t.Fatal("the end of the request is not waited for")
			}
			s := ticket.Scan()
			if c.body != "" {
				s.Begin(status, kind, c.coding)
				s.Write([]byte(c.body))
			}
			ticket.Done(guard.Outcome{End: c.end, Status: status})
			cost := most - leftOf(t, g)
			least, want := c.least, c.want
			if want < 0 {
				want, least = estimate, estimate
			}
			if least == 0 {
				least = want
			}
			if cost < least || cost > want {
				t.Errorf("the cost is %d, want %d to %d", cost, least, want)
			}
			for _, cause := range guard.TokenCauses() {
				if n := g.AnswersBy("a", cause); (n == 1) != (cause == c.cause) {
					t.Errorf("%d answers with %s", n, cause)
				}
			}
		})
	}
}

// TestScanIsShared: two rules and a trial read one answer, each by its own weights. Other requests have no Scan.
func TestScanIsShared(t *testing.T) {
	first, second := byTokens(t, 1000), byTokens(t, 1000)
	second.Name, second.SettleBody = "b", &models.Settle{API: models.OpenAI, Weights: models.Weights{Input: models.One, Output: 3 * models.One}}
	plain := byClient(t, "plain", "/a", perMinute(10))
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{first, second, plain}})
	ticket := asked(t, g, "POST", chatRequest)
	ticket.Forward()
	s := ticket.Scan()
	s.Begin(200, "application/json", "")
	for _, b := range []byte(chatAnswer) {
		s.Write([]byte{b})
	}
	ticket.Done(guard.Outcome{Status: 200})
	a, b := g.Tokens("a"), g.Tokens("b")
	if a.Input != 20 || a.Output != 30 || a.Actual != 50 || b.Actual != 20+3*30 || a.Estimated < 110 {
		t.Errorf("the tokens are %+v and %+v", a, b)
	}
	other := entered(t, g, "x")
	if other.Forward(); other.Scan() != nil {
		t.Error("a request of a plain rule has a Scan")
	}
	other.Done(guard.Outcome{Status: 200})
}

// TestEstimateIsCut: a fresh key gets its first request through, however large the estimate and however small the limit.
func TestEstimateIsCut(t *testing.T) {
	r := byTokens(t, 5)
	r.Policies = append(r.Policies, headgate.Policy{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 1000, Per: 1e9, Burst: 3}})
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	for i, want := range []headgate.Verdict{headgate.Allow, headgate.Deny} {
		if ticket := asked(t, g, "POST", chatRequest); ticket.Answer.Verdict != want {
			t.Errorf("request %d: %v, want %v", i, ticket.Answer.Verdict, want)
		}
	}
}

// TestBodyBound: only requests that a rule with MaxBody may match have their bodies read.
func TestBodyBound(t *testing.T) {
	large, small := byTokens(t, 10), byTokens(t, 10)
	large.Name, large.Match.Path, large.MaxBody = "large", "/v1/files", 4<<20
	small.Match.Methods = []string{"POST"}
	exempt := rule.Match{Path: "/v1/health"}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{small, large}, Exempt: []rule.Match{exempt}})
	for i, c := range []struct {
		method, path string
		want         int64
	}{{"POST", "/v1/chat", 1 << 20}, {"GET", "/v1/chat", 0}, {"POST", "/v1/files", 4 << 20}, {"GET", "/v1/files", 4 << 20}, {"POST", "/", 0}, {"POST", "/v1/health", 0}} {
		req := request(c.path, "x")
		req.Method = c.method
		if n := g.BodyBound(req); n != c.want || req.Path != c.path {
			t.Errorf("case %d: %d bytes are read, want %d", i, n, c.want)
		}
	}
	plain, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(1))}})
	if plain.ReadsBodies() || plain.BodyBound(request("/a", "x")) != 0 {
		t.Error("a guard without rules that read bodies reads some")
	}
}

// TestHeadersAsSum: the cost is the weighted sum of headers, rounded up.
func TestHeadersAsSum(t *testing.T) {
	r := byClient(t, "a", "/v1/*", perMinute(1000))
	r.SettleBody = &models.Settle{Headers: []models.Field{{Name: "X-In", Weight: models.One / 2}, {Name: "X-Out", Weight: 5 * models.One}}}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	for i, c := range []struct {
		in, out string
		status  int
		want    int64
	}{{"3", "4", 200, 22}, {"3", "", 200, 2}, {"", "", 200, 1}, {"", "", 500, 0}, {"-1", "x", 200, 1}, {"9007199254740992", "9007199254740992", 200, -1}} {
		before := leftOf(t, g)
		ticket := asked(t, g, "POST", "")
		ticket.Forward()
		ticket.Scan().Begin(c.status, "application/json", "")
		ticket.Done(guard.Outcome{Status: c.status, Header: func(name string) (string, bool) {
			value := map[string]string{"X-In": c.in, "X-Out": c.out}[name]
			return value, value != ""
		}})
		if cost := before - leftOf(t, g); cost != c.want && c.want >= 0 {
			t.Errorf("case %d: the cost is %d, want %d", i, cost, c.want)
		}
	}
}

// TestBodySettings: settings that contradict each other are refused.
func TestBodySettings(t *testing.T) {
	for name, change := range map[string]func(r *guard.Rule){
		"two settles":         func(r *guard.Rule) { r.Settle = "X-Cost" },
		"bytes":               func(r *guard.Rule) { r.Bytes = guard.ResponseBytes },
		"an estimate alone":   func(r *guard.Rule) { r.SettleBody = nil },
		"a body of 65 MiB":    func(r *guard.Rule) { r.MaxBody = 65 << 20 },
		"a negative bound":    func(r *guard.Rule) { r.MaxBody = -1 },
		"an unknown on_spent": func(r *guard.Rule) { r.OnSpent = 9 },
	} {
		r := byTokens(t, 10)
		change(&r)
		g, _ := newGuard(t, guard.Config{})
		if _, err := g.Prepare(guard.Config{Rules: []guard.Rule{r}, Store: g.Store()}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestAPIRefusals: every preset has a body for refusals.
func TestAPIRefusals(t *testing.T) {
	for api, path := range map[models.API]string{
		models.OpenAI: "/v1/x", models.Anthropic: "/v1/x", models.Gemini: "/v1/x", models.Bedrock: "/v1/x", models.Ollama: "/v1/x",
		models.Cohere: "/v1/x", models.Auto: "/v1/x",
	} {
		r := byTokens(t, 1)
		r.SettleBody = &models.Settle{API: api}
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
		asked(t, g, "POST", chatRequest)
		refused := asked(t, g, "POST", chatRequest)
		if refused.Answer.Verdict != headgate.Deny || refused.Answer.Closest().Response(path) == nil {
			t.Errorf("%s: no body", fmt.Sprint(api))
		}
	}
}
