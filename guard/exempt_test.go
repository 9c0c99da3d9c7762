package guard_test

import (
	"net/netip"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// fieldsOf is a request's header.
type fieldsOf map[string]string

func (f fieldsOf) Lookup(name string) (string, bool) { v, ok := f[name]; return v, ok }

// routed is the metadata of a call that a gRPC server has routed.
type routed struct{ fieldsOf }

func (routed) FromGRPC() {}

const healthCheck = "/grpc.health.v1.Health/Check"

// verdict decides a request without a client.
func verdict(t *testing.T, g *guard.Guard, req headgate.Request) headgate.Verdict {
	t.Helper()
	var a guard.Answer
	if err := g.Decide(t.Context(), &req, &a); err != nil {
		t.Fatal(err)
	}
	return a.Verdict
}

// TestShareExempt: fair share ignores requests outside its match and exempt requests. Their work is
// not counted.
func TestShareExempt(t *testing.T) {
	scoped := func(f *guard.FairShare) {
		f.Match = rule.Match{Path: "/api/*"}
		f.Exempt = guard.Exempt{
			Paths: []string{"/api/healthz", "/api/probes/*"}, Methods: []string{"OPTIONS"},
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		}
	}
	for _, shadow := range []bool{false, true} {
		change := scoped
		if shadow {
			change = func(f *guard.FairShare) { scoped(f); f.Mode = guard.Shadow }
		}
		g, _, _ := sharing(t, guard.Config{FairShare: among(t, change)})
		for _, c := range []struct {
			says    string
			req     headgate.Request
			refused bool
		}{
			{"what is matched", headgate.Request{Method: "GET", Path: "/api/x"}, true},
			{"what is not matched", headgate.Request{Method: "GET", Path: "/healthz"}, false},
			{"an exempt path", headgate.Request{Method: "GET", Path: "/api/healthz"}, false},
			{"below an exempt prefix", headgate.Request{Method: "GET", Path: "/api/probes/a"}, false},
			{"a path that begins like one", headgate.Request{Method: "GET", Path: "/api/healthzz"}, true},
			{"below an exact path", headgate.Request{Method: "GET", Path: "/api/healthz/x"}, true},
			{"another case", headgate.Request{Method: "GET", Path: "/api/Healthz"}, true},
			{"an exempt method", headgate.Request{Method: "OPTIONS", Path: "/api/x"}, false},
			{"its lower case", headgate.Request{Method: "options", Path: "/api/x"}, true},
			{"an exempt address", headgate.Request{Method: "GET", Path: "/api/x", IP: netip.MustParseAddr("10.1.2.3")}, false},
			{"another address", headgate.Request{Method: "GET", Path: "/api/x", IP: netip.MustParseAddr("10.2.2.3")}, true},
			{
				"a forwarded address is not the peer's",
				headgate.Request{Method: "GET", Path: "/api/x", XFFIP: netip.MustParseAddr("10.1.2.3"), UserIP: netip.MustParseAddr("10.1.2.3")},
				true,
			},
		} {
			if got := verdict(t, g, c.req) == headgate.Deny; got != (c.refused && !shadow) {
				t.Errorf("%s, shadow %v: refused %v, want %v", c.says, shadow, got, c.refused)
			}
			if got := g.ShareExempt(&c.req) == ""; got != c.refused {
				t.Errorf("%s: ShareExempt gives %q", c.says, g.ShareExempt(&c.req))
			}
		}
		for range 100 {
			verdict(t, g, headgate.Request{Path: "/api/healthz", Header: fieldsOf{"X-Client-Id": "a"}})
		}
		counts(t, g, "a", 0, 0)
	}
}

// TestGRPCProbes: calls of gRPC's health and reflection pass fair share and rules for every path. A
// used-up limit still refuses every other request.
func TestGRPCProbes(t *testing.T) {
	closed := func(name, path string) guard.Rule {
		policies, err := rule.ParseLimit("0/1h")
		if err != nil {
			t.Fatal(err)
		}
		return guard.Rule{
			Rule:     rule.Rule{Name: name, Match: rule.Match{Path: path}, Key: []rule.Part{partOf(t, "all")}},
			Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: policies}},
		}
	}
	grpc := fieldsOf{"Content-Type": "application/grpc+proto"}
	post := func(path string, header headgate.Values) headgate.Request {
		return headgate.Request{Method: "POST", Path: path, Header: header}
	}
	cases := []struct {
		says    string
		req     headgate.Request
		passes  bool // when requests go to a service that speaks HTTP/2
		inGRPCs bool // otherwise: only inside a gRPC server
	}{
		{"health, routed", post(healthCheck, routed{}), true, true},
		{"health, forwarded", post(healthCheck, grpc), true, false},
		{"watch", post("/grpc.health.v1.Health/Watch", grpc), true, false},
		{"reflection", post("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", grpc), true, false},
		{"reflection of old", post("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", grpc), true, false},
		{"another method of health", post("/grpc.health.v1.Health/Other", grpc), false, false},
		{"below it", post(healthCheck+"/x", grpc), false, false},
		{"with parameters", post(healthCheck+";x=1", grpc), false, false},
		{"another case", post("/grpc.health.v1.health/check", grpc), false, false},
		{"another service, routed", post("/shop.v1.Orders/Place", routed{}), false, false},
		{"no call", post(healthCheck, fieldsOf{"Content-Type": "application/json"}), false, false},
		{"gRPC-Web", post(healthCheck, fieldsOf{"Content-Type": "application/grpc-web"}), false, false},
		{"GET", headgate.Request{Method: "GET", Path: healthCheck, Header: grpc}, false, false},
		{"no header", post(healthCheck, nil), false, false},
	}
	for _, forwards := range []bool{true, false} {
		for _, c := range []guard.Config{
			{ForwardsGRPC: forwards, FairShare: among(t)},
			{ForwardsGRPC: forwards, Rules: []guard.Rule{closed("every", "")}},
			{ForwardsGRPC: forwards, Rules: []guard.Rule{closed("every", "/*")}},
		} {
			g, _, _ := sharing(t, c)
			for _, x := range cases {
				want := x.inGRPCs || forwards && x.passes
				if got := verdict(t, g, x.req) != headgate.Deny; got != want {
					t.Errorf("%s, forwards %v, %d rules: passes %v, want %v", x.says, forwards, len(c.Rules), got, want)
				}
			}
		}
	}
	g, _, _ := sharing(t, guard.Config{ForwardsGRPC: true, Rules: []guard.Rule{closed("health", "/grpc.health.v1.Health/*")}})
	if verdict(t, g, post(healthCheck, routed{})) != headgate.Deny {
		t.Error("a rule that names the path of health does not count it")
	}
}

// TestExemptFolds: the paths of match and of exemptions are compared as the service compares them.
func TestExemptFolds(t *testing.T) {
	g, _, _ := sharing(t, guard.Config{Folds: rule.Folds{Case: true}, FairShare: among(t, func(f *guard.FairShare) {
		f.Match.Path, f.Exempt.Paths = "/Api/*", []string{"/Api/Healthz"}
	})})
	if verdict(t, g, headgate.Request{Method: "GET", Path: "/aPI/x"}) != headgate.Deny {
		t.Error("a path in another case misses the match")
	}
	if why := g.ShareExempt(&headgate.Request{Method: "GET", Path: "/API/healthz"}); why != "the path is exempt" {
		t.Errorf("ShareExempt says %q of another case", why)
	}
	if verdict(t, g, headgate.Request{Method: "GET", Path: "/api/HEALTHZ"}) == headgate.Deny {
		t.Error("an exempt path in another case is refused")
	}
}

// TestExemptFaults: an exemption of everything is refused, and also a malformed entry.
func TestExemptFaults(t *testing.T) {
	for _, change := range []func(*guard.FairShare){
		func(f *guard.FairShare) { f.Exempt.Paths = []string{"/*"} },
		func(f *guard.FairShare) { f.Exempt.Paths = []string{""} },
		func(f *guard.FairShare) { f.Exempt.Paths = []string{"healthz"} },
		func(f *guard.FairShare) { f.Exempt.Paths = make([]string, 1001) },
		func(f *guard.FairShare) { f.Exempt.Methods = []string{""} },
		func(f *guard.FairShare) { f.Exempt.Addresses = make([]netip.Prefix, 1) },
		func(f *guard.FairShare) {
			f.Exempt.Addresses = []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}
		},
		func(f *guard.FairShare) { f.Match.Path = "api" },
	} {
		if _, err := guard.New(guard.Config{FairShare: among(t, change)}); err == nil {
			t.Error("it is taken")
		}
	}
}

// TestScopeAllocatesNothing: the check of match and exemptions allocates nothing.
func TestScopeAllocatesNothing(t *testing.T) {
	g, _, _ := sharing(t, guard.Config{FairShare: among(t, func(f *guard.FairShare) {
		f.Match, f.Exempt.Paths = rule.Match{Path: "/api/*"}, []string{"/api/healthz"}
	})})
	var a guard.Answer
	req := headgate.Request{Method: "GET", Path: "/api/x", Header: fieldsOf{"X-Client-Id": "a"}}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _ = g.Decide(ctx, &req, &a) }); n > 0 {
		t.Errorf("%v allocations a request", n)
	}
}
