package guard_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
)

// missing returns a rule for a path that counts by X-Client-Id, and treats requests without it as m says.
func missing(t *testing.T, name string, m rule.Missing) guard.Rule {
	t.Helper()
	r := byClient(t, name, "/a", perMinute(2))
	r.Missing = m
	return r
}

// TestMissing sends requests with and without the header of three rules: each request without it counts together with the others,
// passes, or is refused.
func TestMissing(t *testing.T) {
	for _, c := range []struct {
		missing  rule.Missing
		mode     guard.Mode
		verdicts string // of three requests without the header: a for allow, d for deny
		reason   headgate.Reason
		status   int
		results  int
	}{
		{rule.MissingShared, guard.Enforce, "aad", headgate.OverLimit, 429, 2},
		{rule.MissingSkip, guard.Enforce, "aaa", headgate.WithinLimit, 0, 1},
		{rule.MissingRefuse, guard.Enforce, "ddd", headgate.KeyMissing, 400, 2},
		{rule.MissingRefuse, guard.Shadow, "aaa", headgate.WithinLimit, 0, 2},
		{rule.MissingSkip, guard.Shadow, "aaa", headgate.WithinLimit, 0, 1},
	} {
		r := missing(t, "client", c.missing)
		r.Mode = c.mode
		everybody := byClient(t, "all", "/a", perMinute(4))
		everybody.Key = []rule.Part{partNamed(t, "all")}
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r, everybody}})
		var got []byte
		var last *guard.Answer
		for range 3 {
			last = decide(t, g, request("/a", ""))
			got = append(got, last.Verdict.String()[0])
		}
		if string(got) != c.verdicts || last.Closest().Decision.Reason != c.reason ||
			last.Verdict == headgate.Deny && fields.Status(last) != c.status || len(last.Results) != c.results {
			t.Errorf("%s in mode %s: got %s, %s with status %d and %d results; want %+v", c.missing, c.mode, got, last.Closest().Decision.Reason,
				fields.Status(last), len(last.Results), c)
		}
		left := decide(t, g, request("/a", "x")).Results
		if want := map[string]int64{"aad": 1, "aaa": 0, "ddd": 3}[c.verdicts]; remaining(left, "all") != want {
			t.Errorf("%s in mode %s: %d units of the other rule are left, want %d", c.missing, c.mode, remaining(left, "all"), want)
		}
	}
}

// remaining returns what is left of the limit of a policy.
func remaining(results []guard.Result, policy string) int64 {
	for i := range results {
		if results[i].Policy == policy {
			return results[i].Decision.Remaining
		}
	}
	return -1
}

func partNamed(t *testing.T, text string) rule.Part {
	t.Helper()
	part, err := rule.ParsePart(text)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

// TestMissingNamesThePart checks that a refusal names the part that is missing, and repeats no value.
func TestMissingNamesThePart(t *testing.T) {
	r := missing(t, "client", rule.MissingRefuse)
	r.Key = append(r.Key, partNamed(t, "xff_ip/24"), partNamed(t, "cookie:session"))
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	req := request("/a", "secret")
	a := decide(t, g, req)
	if part, lacks := a.Results[0].Lacks(); !lacks || part.String() != "cookie:session" || !a.Results[0].Final() || !a.Results[0].Shared {
		t.Errorf("the request lacks %s, %v, want cookie:session", part, lacks)
	}
	const want = "The request has no cookie:session, by which it is counted under the policy client: send the request with it."
	if got := fields.Detail(&a.Results[0]); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	req.Header = headers{}
	if part, _ := decide(t, g, req).Results[0].Lacks(); part.String() != "header:X-Client-Id" {
		t.Errorf("the request lacks %s first, want the header", part)
	}
	req.Header, req.Cookie = headers{"X-Client-Id": "secret"}, headers{"session": "s"}
	if part, lacks := decide(t, g, req).Results[0].Lacks(); lacks {
		t.Errorf("a whole request lacks %s", part)
	}
}

// TestMissingInAGroup checks that a rule that does not apply leaves its place to the next rule of its group.
func TestMissingInAGroup(t *testing.T) {
	named, rest := missing(t, "named", rule.MissingSkip), byClient(t, "rest", "/a", perMinute(5))
	named.Group, rest.Group, rest.Key = "api", "api", []rule.Part{partNamed(t, "ip")}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{named, rest}})
	for client, want := range map[string]string{"x": "named", "": "rest"} {
		if a := decide(t, g, request("/a", client)); len(a.Results) != 1 || a.Results[0].Policy != want {
			t.Errorf("client %q: %d results, the first by %s, want one by %s", client, len(a.Results), a.Results[0].Policy, want)
		}
	}
}

// TestMissingOfQuotas checks that a rule with a quota refuses and skips requests without a customer.
func TestMissingOfQuotas(t *testing.T) {
	for m, want := range map[rule.Missing]headgate.Verdict{rule.MissingSkip: headgate.Allow, rule.MissingRefuse: headgate.Deny} {
		r := counting(t, "api", "/a")
		r.Missing = m
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{metering(1, 2)})})
		if a := decide(t, g, request("/a", "")); a.Verdict != want || m == rule.MissingSkip && len(a.Results) > 0 {
			t.Errorf("%s: got %s with %d results, want %s", m, a.Verdict, len(a.Results), want)
		}
	}
}

// TestMissingAllocatesNothing checks that requests without a part cost no allocation.
func TestMissingAllocatesNothing(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	for _, m := range rule.Missings() {
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{missing(t, "client", m)}})
		var a guard.Answer
		req := request("/a", "")
		if n := testing.AllocsPerRun(100, func() {
			if err := g.Decide(t.Context(), req, &a); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", m, n)
		}
	}
}
