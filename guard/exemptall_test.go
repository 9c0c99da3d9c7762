package guard_test

import (
	"net/netip"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// observed counts the answers that an observer gets.
type observed struct{ n int }

func (o *observed) Observe(*headgate.Request, *guard.Answer) { o.n++ }

// TestExempt: nothing decides an exempt request: no rule, no fair share, not the refusal without a source. It is not observed. A header
// of a client exempts nothing.
func TestExempt(t *testing.T) {
	closed := guard.Rule{
		Rule:     rule.Rule{Name: "closed", Key: []rule.Part{partOf(t, "all")}},
		Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 0, Per: 1e9}}},
	}
	if limit, err := rule.ParseLimit("0/1h"); err == nil {
		closed.Policies[0].Limit = limit
	}
	exempt := []rule.Match{{Path: "/Healthz"}, {Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Not: &rule.Match{Path: "/admin/*"}}}
	proxy, client := netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("203.0.113.7")
	for name, c := range map[string]guard.Config{
		"a rule": {Rules: []guard.Rule{closed}}, "fair share": {FairShare: among(t)}, "no source": {WithoutState: true},
		"independent": {Rules: []guard.Rule{closed}, FairShare: among(t), Independent: true},
	} {
		seen := &observed{}
		c.Exempt, c.Folds, c.Observer = exempt, rule.Folds{Case: true}, seen
		c.Identity = &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		g, _, _ := sharing(t, c)
		refused := 0
		for _, row := range []struct {
			req    headgate.Request
			passes bool
		}{
			{headgate.Request{Method: "GET", Path: "/healthZ", IP: client}, true},
			{headgate.Request{Method: "GET", Path: "/healthz/x", IP: client}, false},
			{headgate.Request{Method: "GET", Path: "/a", IP: proxy}, true},
			{headgate.Request{Method: "GET", Path: "/admin/x", IP: proxy}, false},
			{headgate.Request{Method: "GET", Path: "/a", IP: client, Header: fieldsOf{"X-Forwarded-For": "10.1.1.1"}}, false},
			{headgate.Request{Method: "GET", Path: "/a", IP: proxy, Header: fieldsOf{"X-Forwarded-For": "10.1.1.1, 203.0.113.7"}}, false},
			{headgate.Request{Method: "GET", Path: "/a", IP: proxy, Header: fieldsOf{"X-Forwarded-For": "garbage"}}, false},
			{headgate.Request{Method: "GET", Path: "/a", IP: proxy, Header: fieldsOf{"X-Forwarded-For": "10.2.2.2"}}, true},
		} {
			var a guard.Answer
			req := row.req
			if err := g.Decide(t.Context(), &req, &a); err != nil {
				t.Fatal(err)
			}
			if a.Exempt != row.passes || (a.Verdict == headgate.Deny) == row.passes || row.passes && a.Closest() != nil {
				t.Errorf("%s: %s from %v with %v: exempt %v, %v", name, req.Path, req.IP, req.Header, a.Exempt, a.Verdict)
			}
			if !row.passes {
				refused++
			}
		}
		if seen.n != refused {
			t.Errorf("%s: %d answers were observed, want the %d refusals", name, seen.n, refused)
		}
	}
	for _, bad := range [][]rule.Match{{{}}, {{Path: "a"}}, make([]rule.Match, 257)} {
		if _, err := guard.New(guard.Config{Exempt: bad}); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestExemptAllocatesNothing: an exempt request costs no memory.
func TestExemptAllocatesNothing(t *testing.T) {
	g, err := guard.New(guard.Config{
		Exempt:   []rule.Match{{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Query: map[string]string{"probe": "1"}}},
		Identity: &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	query := rule.Query("a=b&probe=1")
	var a guard.Answer
	ticket := guard.Ticket{Answer: &a}
	if n := testing.AllocsPerRun(100, func() {
		req := headgate.Request{Path: "/a", IP: netip.MustParseAddr("10.1.1.1"), Query: &query}
		ticket.Answer = &a
		if err := g.Admit(t.Context(), &req, &ticket); err != nil || !a.Exempt || ticket.Forward() {
			t.Fatal(err, a.Exempt)
		}
	}); n > 1 { // The request itself.
		t.Errorf("%v allocations", n)
	}
}
