package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// byUser is a rule for /users/{id}/** that counts by the id.
func byUser(t *testing.T, name string, n int64) guard.Rule {
	t.Helper()
	r := byClient(t, name, "/users/{id}/**", perMinute(n))
	r.Key = []rule.Part{partNamed(t, "path:{id}")}
	return r
}

// lettersOf sends requests to the paths and gives the first letter of each verdict.
func lettersOf(t *testing.T, g *guard.Guard, paths ...string) string {
	t.Helper()
	var all strings.Builder
	for _, path := range paths {
		all.WriteByte(decide(t, g, request(path, "x")).Verdict.String()[0])
	}
	return all.String()
}

// TestKeysByVariables counts by a segment of the path, with the other settings of rules that look at the key or the path.
func TestKeysByVariables(t *testing.T) {
	plain := byUser(t, "user", 1)
	overridden := byUser(t, "user", 1)
	overridden.Overrides = []guard.Override{{Value: "vip-*", Many: true, Unlimited: true}, {Value: "0", Policies: byClient(t, "r", "/", perMinute(0)).Policies}}
	except := byUser(t, "user", 1)
	except.Match.Not, except.Exempt = &rule.Match{Path: "/users/{id}/free"}, []rule.Match{{Path: "/users/{other}/health"}}
	first, second := byUser(t, "first", 1), byUser(t, "second", 2)
	first.Match.Path, first.Group, second.Group = "/users/{id}/upload", "g", "g"
	skipping := byUser(t, "user", 1)
	skipping.Key, skipping.Missing = append(skipping.Key, partNamed(t, "cookie:none")), rule.MissingSkip
	for name, c := range map[string]struct {
		config guard.Config
		paths  []string
		want   string
	}{
		"alone":     {guard.Config{Rules: []guard.Rule{plain}}, []string{"/users/a", "/users/a/x", "/users/b", "/users", "/users/"}, "adaaa"},
		"overrides": {guard.Config{Rules: []guard.Rule{overridden}}, []string{"/users/vip-1", "/users/vip-1", "/users/0", "/users/1", "/users/1"}, "aadad"},
		"except": {
			guard.Config{Rules: []guard.Rule{except}},
			[]string{"/users/a", "/users/a/free", "/users/a/health", "/users/a/x", "/users/b/free", "/users/b"},
			"aaadaa",
		},
		"group": {
			guard.Config{Rules: []guard.Rule{first, second}},
			[]string{"/users/a/upload", "/users/a/upload", "/users/a/x", "/users/a/y", "/users/a/z", "/users/b/upload"},
			"adaada",
		},
		"folds": {
			guard.Config{Rules: []guard.Rule{plain}, Folds: rule.Folds{Case: true, TrailingSlash: true, Parameters: true}},
			[]string{"/users/Acme", "/USERS/acme/", "/users;a=b/;c/acme;d/x", "/users/other"},
			"adda",
		},
		"missing": {guard.Config{Rules: []guard.Rule{skipping}}, []string{"/users/a", "/users/a"}, "aa"},
	} {
		g, _ := newGuard(t, c.config)
		if got := lettersOf(t, g, c.paths...); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if key := c.config.Rules[0].Key[0]; key != partNamed(t, "path:{id}") {
			t.Errorf("%s: the guard has changed the key of its caller", name)
		}
	}
}

// TestVariablesOfCustomers finds customers, clients of fair share and named keys by a segment.
func TestVariablesOfCustomers(t *testing.T) {
	r := counting(t, "api", "/users/{id}")
	r.Key = []rule.Part{partNamed(t, "path:{id}")}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{{Name: "free", Quotas: calls(upTo(1, 0))}})})
	if got := lettersOf(t, g, "/users/a", "/users/a", "/users/b"); got != "ada" {
		t.Errorf("customers: %s, want ada", got)
	}
	share := &guard.FairShare{
		Client: partNamed(t, "path:{id}"), Match: rule.Match{Path: "/users/{id}"}, Exempt: guard.Exempt{Paths: []string{"/healthz"}},
		Config: fairshare.Config{Capacity: 100, Cycle: 1e9, ForgetAfter: 10, MaxClients: 10, NewClientsPerCycle: 10},
	}
	g, _ = newGuard(t, guard.Config{FairShare: share})
	if got := lettersOf(t, g, "/users/a", "/users", "/users/b"); got != "aaa" {
		t.Errorf("fair share: %s, want aaa", got)
	}
	shares, _ := g.Shares()
	if names := len(shares.Clients); names < 2 {
		t.Errorf("fair share knows %d clients, want a and b: %+v", names, shares)
	}
	g, _ = newGuard(t, guard.Config{Rules: []guard.Rule{byUser(t, "user", 2)}})
	lettersOf(t, g, "/users/a/x")
	state, err := g.Peek(t.Context(), guard.KeyName{Rule: "user", Values: []string{"a"}})
	if err != nil || state.Limits[0].Used != 1 || state.Key != `user path:{id}="a"` {
		t.Errorf("the key is %+v, %v", state, err)
	}
}

// TestVariablesThatNoMatchHas: a guard refuses the rule, and names what to write.
func TestVariablesThatNoMatchHas(t *testing.T) {
	r := byUser(t, "user", 1)
	r.Match.Path = "/users/{user}"
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	_, err = guard.New(guard.Config{Store: store, Rules: []guard.Rule{r}})
	if err == nil || !strings.Contains(err.Error(), `rules[0].key[0] match.path "/users/{user}" has no name "id": use path:{user}`) {
		t.Errorf("got %v", err)
	}
}

// TestKeysByQueries counts by a value of the query. A front without queries is refused.
func TestKeysByQueries(t *testing.T) {
	r := byClient(t, "user", "/a", perMinute(1))
	r.Key, r.Missing = []rule.Part{partNamed(t, "query:user")}, rule.MissingRefuse
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	for _, c := range []struct {
		query  rule.Query
		reason headgate.Reason
	}{
		{"user=a&x=1", headgate.WithinLimit},
		{"x=1&us%65r=%61", headgate.OverLimit},
		{"user=b", headgate.WithinLimit},
		{"user=", headgate.KeyMissing},
		{"", headgate.KeyMissing},
		{rule.Query("user=" + strings.Repeat("x", 10_000)), headgate.WithinLimit},
		{rule.Query("user=" + strings.Repeat("x", 10_000) + "y"), headgate.WithinLimit},
		{rule.Query("user=" + strings.Repeat("x", 10_000)), headgate.OverLimit},
	} {
		req := request("/a", "")
		req.Query = &c.query
		if got := decide(t, g, req).Closest().Decision.Reason; got != c.reason {
			t.Errorf("%.40s: %s, want %s", c.query, got, c.reason)
		}
	}
	reads := g.Reads()
	for query, want := range map[string]bool{"user=a": false, "user=a&user=b": true, "USER=a": true, "user=a+b": true, "x=a+b": false, "user=%zz": true} {
		if _, unclear := reads.UnclearQuery(query); unclear != want {
			t.Errorf("%s is unclear: %t, want %t", query, unclear, want)
		}
	}
	lacks := new(guard.UnsuppliedError)
	if err := g.Attach(guard.Front{Name: "calls", Supplies: rule.SupplyHeaders, Method: "GET"}); !errors.As(err, &lacks) || lacks.Part.String() != "query:user" {
		t.Errorf("a front without queries: %v", err)
	}
	if parts := g.Parts(); len(parts) != 1 || parts[0] != "query:user" {
		t.Errorf("the parts are %v", parts)
	}
}

// TestNewKeysAllocateNothing: a decision by a segment, a label and a value of the query.
func TestNewKeysAllocateNothing(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	r := byUser(t, "user", headgate.MaxUnits)
	r.Match.Hosts = []string{"{sub}.example", "x-{sub}.example.org"}
	r.Key = []rule.Part{partNamed(t, "path:{id}"), partNamed(t, "host:{sub}"), partNamed(t, "query:user")}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	req, query := request("/users/"+strings.Repeat("i", 500)+"/x", ""), rule.Query("a=b&user=c")
	req.Query = &query
	var a guard.Answer
	if n := testing.AllocsPerRun(100, func() {
		if err := g.Decide(t.Context(), req, &a); err != nil || len(a.Results) != 1 {
			t.Fatalf("%d results, %v", len(a.Results), err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
