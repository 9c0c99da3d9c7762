package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// among is fair share of 4 units a second between the clients a and b: each has 2 units at once.
func among(t *testing.T, change ...func(*guard.FairShare)) *guard.FairShare {
	t.Helper()
	f, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Weights = map[string]int64{"a": 1, "b": 1}
	for _, c := range change {
		c(f)
	}
	return f
}

func inShadow(f *guard.FairShare) { f.Mode = guard.Shadow }

func partOf(t *testing.T, text string) rule.Part {
	t.Helper()
	part, err := rule.ParsePart(text)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

// watched is a store that counts its calls.
type watched struct {
	headgate.Store

	asked int
}

// Apply implements headgate.Store.
func (w *watched) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	w.asked++
	return w.Store.Apply(ctx, ops, decisions)
}

// sharing is a guard with fair share. Its store and fair share use one clock.
func sharing(t *testing.T, c guard.Config) (*guard.Guard, *watched, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	store := &watched{Store: inMemory(t, clock)}
	c.Clock = clock.Now
	if c.Store == nil {
		c.Store = store
	}
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g, store, clock
}

// shareOf gives the share of a client.
func shareOf(t *testing.T, g *guard.Guard, client string) fairshare.Share {
	t.Helper()
	shares, ok := g.Shares()
	if !ok {
		t.Fatal("there is no fair share")
	}
	for _, s := range shares.Clients {
		if s.Client == client {
			return s
		}
	}
	return fairshare.Share{}
}

// counts compares the admitted and the refused units of a client in this cycle.
func counts(t *testing.T, g *guard.Guard, client string, admitted, refused int64) {
	t.Helper()
	if s := shareOf(t, g, client); s.Admitted != admitted || s.Refused != refused || s.Seen != admitted+refused {
		t.Errorf("%s: %d of %d admitted and %d refused, want %d and %d", client, s.Admitted, s.Seen, s.Refused, admitted, refused)
	}
}

// A client that has used its share is refused until the next cycle, and other clients are not. The
// answer has the client's share, as for any limit.
func TestFairShare(t *testing.T) {
	g, store, clock := sharing(t, guard.Config{FairShare: among(t)})
	for i, want := range []struct {
		client    string
		verdict   headgate.Verdict
		reason    headgate.Reason
		remaining int64
	}{
		{"a", headgate.Allow, headgate.WithinLimit, 1},
		{"a", headgate.Allow, headgate.WithinLimit, 0},
		{"a", headgate.Deny, headgate.OverShare, 0},
		{"b", headgate.Allow, headgate.WithinLimit, 1},
		{"a", headgate.Deny, headgate.OverShare, 0},
	} {
		a := decide(t, g, request("/p", want.client))
		r := a.Closest()
		if r == nil || len(a.Results) != 1 || a.Verdict != want.verdict || r.Decision.Reason != want.reason || r.Decision.Remaining != want.remaining {
			t.Fatalf("request %d, by %s: %v, %+v; want %+v", i, want.client, a.Verdict, a.Results, want)
		}
		if r.Rule.Name != "fair_share" || r.Policy != "fair_share" || r.Stage != guard.FairShareName || !r.Enforced() || r.Shared || r.Fallback {
			t.Errorf("request %d: result %+v", i, r)
		}
		if r.Limit != (headgate.Limit{Count: 2, Per: time.Second}) || r.Decision.Limit != 2 || r.Decision.At != clock.Now() {
			t.Errorf("request %d: limit %v, decision %+v", i, r.Limit, r.Decision)
		}
		if refused := want.verdict == headgate.Deny; refused && (fields.Status(a) != http.StatusTooManyRequests || a.RetryAfter() < time.Second) {
			t.Errorf("request %d: status %d, again in %v", i, fields.Status(a), a.RetryAfter())
		}
	}
	counts(t, g, "a", 2, 2)
	counts(t, g, "b", 1, 0)
	clock.Advance(time.Second)
	if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow {
		t.Errorf("in the next cycle: %v", a.Verdict)
	}
	if store.asked != 0 {
		t.Errorf("the store was asked %d times, want never: there are no rules", store.asked)
	}
}

// KeyHash differs between clients, and does not show their names.
func TestFairShareKeyHash(t *testing.T) {
	g, _, _ := sharing(t, guard.Config{FairShare: among(t)})
	hash := func(client string) uint64 { return decide(t, g, request("/p", client)).Results[0].KeyHash() }
	if a, b := hash("a"), hash("b"); a == b || a == 0 || a != hash("a") {
		t.Errorf("a is %x and b is %x, then a is %x", a, b, hash("a"))
	}
}

// No rule counts a request that fair share refuses, and no shadow rule does, unless the Config is
// Independent.
func TestShareIsAskedBeforeRules(t *testing.T) {
	for _, independent := range []bool{false, true} {
		t.Run(fmt.Sprintf("independent %v", independent), func(t *testing.T) {
			trial := byClient(t, "trial", "/p", perMinute(10))
			trial.Mode = guard.Shadow
			g, store, _ := sharing(t, guard.Config{
				FairShare: among(t), Rules: []guard.Rule{byClient(t, "wide", "/p", perMinute(10)), trial}, Independent: independent,
			})
			for range 2 {
				decide(t, g, request("/p", "a"))
			}
			a := decide(t, g, request("/p", "a"))
			if a.Verdict != headgate.Deny || a.Closest().Policy != guard.FairShareName {
				t.Fatalf("the third of two: %v by %s", a.Verdict, a.Closest().Policy)
			}
			asked, results, left := 2, 1, int64(8)
			if independent {
				asked, results, left = 3, 3, 7
			}
			if store.asked != asked || len(a.Results) != results {
				t.Errorf("the store was asked %d times, want %d; %d results, want %d", store.asked, asked, len(a.Results), results)
			}
			req := request("/p", "a")
			if err := g.Reload(guard.Config{Rules: []guard.Rule{byClient(t, "wide", "/p", perMinute(10)), trial}, Store: g.Store()}); err != nil {
				t.Fatal(err)
			}
			a = decide(t, g, req)
			for i := range a.Results {
				if r := &a.Results[i]; r.Decision.Remaining != left-1 {
					t.Errorf("%d remain of %s, want %d", r.Decision.Remaining, r.Policy, left-1)
				}
			}
		})
	}
}

// When the rules refuse a request, or cannot read its cost, its units of the share are returned. The
// request counts neither as admitted nor as demand. Shadow rules refuse nothing.
func TestRulesRefuse(t *testing.T) {
	closed, costly, trial := byClient(t, "closed", "/closed", perMinute(0)), byClient(t, "costly", "/costly", perMinute(9)), byClient(t, "trial", "/trial", perMinute(0))
	costly.CostHeader, trial.Mode = "X-Cost", guard.Shadow
	for _, independent := range []bool{false, true} {
		for _, mode := range []guard.Mode{guard.Enforce, guard.Shadow} {
			g, _, _ := sharing(t, guard.Config{
				FairShare: among(t, func(f *guard.FairShare) { f.Mode = mode }), Rules: []guard.Rule{closed, costly, trial}, Independent: independent,
			})
			var a guard.Answer
			for range 3 {
				if err := g.Decide(t.Context(), request("/closed", "a"), &a); err != nil || a.Verdict != headgate.Deny || a.Closest().Policy != "closed" {
					t.Errorf("%v: %v, %v by %s", mode, err, a.Verdict, a.Closest().Policy)
				}
				counts(t, g, "a", 0, 0)
				if err := g.Cancel(t.Context(), &a); err != nil { // Cancel returns nothing a second time.
					t.Error(err)
				}
				counts(t, g, "a", 0, 0)
				bad := request("/costly", "a")
				bad.Header = headers{"X-Client-Id": "a", "X-Cost": "many"}
				if _, found := errortype.As[*guard.CostError](g.Decide(t.Context(), bad, &a)); !found || len(a.Results) != 0 {
					t.Errorf("%v: a cost that a rule cannot read: %v", mode, a.Results)
				}
				counts(t, g, "a", 0, 0)
			}
			if a := decide(t, g, request("/trial", "a")); a.Verdict != headgate.Allow {
				t.Errorf("%v: a shadow rule: %v", mode, a.Verdict)
			}
			counts(t, g, "a", 1, 0)
		}
	}
}

// A request that waits for a rule has its share from the decision on. If it leaves before its
// departure, the share is returned.
func TestShareOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := bucket(t, "slow", "/p", headgate.Limit{Count: 10, Per: time.Second, Burst: 1})
		slow.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Second, MaxWaiters: 1}
		g, err := guard.New(guard.Config{
			FairShare: among(t, func(f *guard.FairShare) { f.Capacity = 20 }), Rules: []guard.Rule{slow}, Store: inMemory(t, nil),
		})
		if err != nil {
			t.Fatal(err)
		}
		decide(t, g, request("/p", "a"))
		a := decide(t, g, request("/p", "a"))
		if a.Verdict != headgate.Wait {
			t.Fatalf("the second: %v", a.Verdict)
		}
		counts(t, g, "a", 2, 0)
		if full := decide(t, g, request("/p", "a")); full.Verdict != headgate.Deny || full.Closest().Decision.Reason != headgate.TooManyWaiters {
			t.Errorf("the third: %v, %v", full.Verdict, full.Closest().Decision.Reason)
		}
		counts(t, g, "a", 2, 0) // The request took a unit and returned it.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Wait(ctx, a); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		counts(t, g, "a", 1, 0)
		if err := g.Cancel(t.Context(), a); err != nil { // After Wait, Cancel has no effect.
			t.Error(err)
		}
		counts(t, g, "a", 1, 0)
		a = decide(t, g, request("/p", "a"))
		if err := g.Wait(t.Context(), a); err != nil {
			t.Error(err)
		}
		counts(t, g, "a", 2, 0)
		if err := g.Cancel(t.Context(), decide(t, g, request("/none", "a"))); err != nil {
			t.Error(err)
		}
		counts(t, g, "a", 2, 0)
	})
}

// In shadow, fair share takes and counts as if enforced, and refuses nothing. Its result follows
// those of the enforced rules.
func TestShareInShadow(t *testing.T) {
	rules := []guard.Rule{byClient(t, "narrow", "/n", perMinute(1)), byClient(t, "trial", "/n", perMinute(9))}
	rules[1].Mode = guard.Shadow
	enforced, _, clock := sharing(t, guard.Config{FairShare: among(t), Rules: rules})
	shadow, _, other := sharing(t, guard.Config{FairShare: among(t, inShadow), Rules: rules})
	for cycle := range 4 {
		for i := range 12 {
			req := request([]string{"/n", "/p"}[i%2], []string{"a", "b", ""}[(i+cycle)%3])
			e, s := decide(t, enforced, req), decide(t, shadow, req)
			at := slices.IndexFunc(s.Results, func(r guard.Result) bool { return r.Stage == guard.FairShareName })
			if at != strings.Count(req.Path, "n") || s.Results[at].Enforced() || e.Results[0].Stage != guard.FairShareName {
				t.Fatalf("fair share is result %d of %s, want that after the enforced ones", at, req.Path)
			}
			is, want := s.Results[at].Decision, e.Results[0].Decision
			is.RetryAfter, want.RetryAfter = 0, 0 // These times have jitter.
			if is != want || s.Results[at].Limit != e.Results[0].Limit {
				t.Errorf("in shadow %+v, enforced %+v", is, want)
			}
			if c := s.Closest(); s.Verdict == headgate.Deny && c.Policy != "narrow" || c != nil && c.Stage == guard.FairShareName {
				t.Errorf("%v by %s", s.Verdict, c.Policy)
			}
		}
		for _, client := range []string{"a", "b"} {
			if is, want := shareOf(t, shadow, client), shareOf(t, enforced, client); is != want {
				t.Errorf("cycle %d: %s has %+v in shadow, and enforced %+v", cycle, client, is, want)
			}
		}
		clock.Advance(time.Second)
		other.Advance(time.Second)
	}
}

// The cost is found as for rules: from the front, from the request, or from the configuration.
func TestShareCost(t *testing.T) {
	costing := func(f *guard.FairShare) { f.Capacity, f.Cost, f.CostHeader = 100, 5, "X-Cost" }
	for _, c := range []struct {
		name   string
		cost   int64  // of the front
		stated string // "-" means that the request states none
		most   int64
		taken  int64 // -1 means a CostError
	}{
		{"unstated", 0, "-", 0, 5},
		{"stated", 0, "7", 0, 7},
		{"by the front", 9, "7", 0, 9},
		{"all there is", 0, "50", 0, 50},
		{"up to the bound", 0, "8", 8, 8},
		{"above the bound", 0, "9", 8, -1},
		{"above the capacity", 0, "101", 0, -1},
		{"nothing", 0, "0", 0, -1},
		{"empty", 0, "", 0, -1},
		{"a word", 0, "all", 0, -1},
	} {
		for _, mode := range []guard.Mode{guard.Enforce, guard.Shadow} {
			g, _, _ := sharing(t, guard.Config{FairShare: among(t, costing, func(f *guard.FairShare) { f.Mode, f.MaxCost = mode, c.most })})
			req, a := request("/p", "a"), new(guard.Answer)
			req.Cost = c.cost
			if c.stated != "-" {
				req.Header = headers{"X-Client-Id": "a", "X-Cost": c.stated}
			}
			err := g.Decide(t.Context(), req, a)
			var cost *guard.CostError
			switch bad := errors.As(err, &cost); {
			case c.taken >= 0:
				if err != nil || a.Results[0].Decision.Reason != headgate.WithinLimit {
					t.Errorf("%s, %v: %v, %+v", c.name, mode, err, a.Results)
				}
			case mode == guard.Enforce:
				if !bad || cost.Rule != guard.FairShareName || cost.Header != "X-Cost" || len(a.Results) != 0 {
					t.Errorf("%s: %v, %+v", c.name, err, a.Results)
				}
			case err != nil || a.Verdict != headgate.Allow || a.Results[0].Decision.Reason != headgate.Never:
				t.Errorf("%s in shadow: %v, %v, %+v", c.name, err, a.Verdict, a.Results)
			}
			counts(t, g, "a", max(0, c.taken), 0)
		}
	}
	// A valid cost may be larger than any share.
	g, _, _ := sharing(t, guard.Config{FairShare: among(t, costing, func(f *guard.FairShare) { f.MaxCost = 1000 })})
	req := request("/p", "a")
	req.Header = headers{"X-Client-Id": "a", "X-Cost": "101"}
	if a := decide(t, g, req); a.Closest().Decision.Reason != headgate.Never || a.RetryAfter() != 0 || !a.Closest().Final() {
		t.Errorf("101 of 100: %+v", a.Closest().Decision)
	}
}

// A request that names no client is refused, or counts for the client Anonymous.
func TestAnonymous(t *testing.T) {
	for name, req := range map[string]*headgate.Request{
		"an empty name": request("/p", ""), "no header": {Method: "GET", Path: "/p", Header: headers{}}, "no headers": {Method: "GET", Path: "/p"},
	} {
		g, store, clock := sharing(t, guard.Config{FairShare: among(t), Rules: []guard.Rule{byClient(t, "wide", "/p", perMinute(9))}})
		a := decide(t, g, req)
		r := a.Closest()
		if a.Verdict != headgate.Deny || r.Decision != (headgate.Decision{Verdict: headgate.Deny, Reason: headgate.AnonymousClient, At: clock.Now()}) {
			t.Errorf("%s: %v, %+v", name, a.Verdict, r.Decision)
		}
		if fields.Status(a) != http.StatusTooManyRequests || a.RetryAfter() != 0 || !r.Final() || !r.Shared || store.asked != 0 {
			t.Errorf("%s: status %d, again in %v; the store was asked %d times", name, fields.Status(a), a.RetryAfter(), store.asked)
		}
		if shares, _ := g.Shares(); shares.Admitted != 0 || len(shares.Clients) != 2 {
			t.Errorf("%s: %+v", name, shares)
		}
		g, _, _ = sharing(t, guard.Config{FairShare: among(t, func(f *guard.FairShare) { f.Anonymous = "a" })})
		for _, want := range []headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny} {
			if a := decide(t, g, req); a.Verdict != want || !a.Closest().Shared {
				t.Errorf("%s, counted for a: %v, want %v", name, a.Verdict, want)
			}
		}
		counts(t, g, "a", 2, 1)
		g, _, _ = sharing(t, guard.Config{FairShare: among(t, inShadow)})
		if a := decide(t, g, req); a.Verdict != headgate.Allow || a.Results[0].Decision.Reason != headgate.AnonymousClient {
			t.Errorf("%s in shadow: %v, %+v", name, a.Verdict, a.Results)
		}
	}
}

// Clients send hostile names. Each client has one name that can be shown anywhere. The name stays
// valid after its request.
func TestHostileNames(t *testing.T) {
	open := func(f *guard.FairShare) {
		f.Capacity, f.Weights, f.NewClientsPerCycle = 1000, map[string]int64{"k\n": 3}, 100
	}
	g, _, _ := sharing(t, guard.Config{FairShare: among(t, open)})
	names := []string{
		"north", "k\n", "k", "k\r", "\x1b[31mred", "\x00", "a\xff", "a\ufffd", "\u202eevil", `"} 1`, "{{.}}", "<b>", " ", "others",
		strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 130), strings.Repeat("\x00", 5000), "日本", "'; drop table",
	}
	var a guard.Answer
	for _, name := range names {
		req := request("/p", name)
		if err := g.Decide(t.Context(), req, &a); err != nil {
			t.Fatal(err)
		}
	}
	shares, _ := g.Shares()
	if len(shares.Clients) != len(names) {
		t.Errorf("%d clients, want %d: %+v", len(shares.Clients), len(names), shares.Clients)
	}
	seen := map[string]bool{}
	for _, s := range shares.Clients {
		if seen[s.Client] || len(s.Client) > rule.MaxClientName || !utf8.ValidString(s.Client) ||
			strings.ContainsFunc(s.Client, func(r rune) bool { return !unicode.IsPrint(r) }) || s.Seen != 1 {
			t.Errorf("client %+v", s)
		}
		seen[s.Client] = true
	}
	if s := shareOf(t, g, rule.ClientName("k\n")); s.Weight != 3 || !s.Pinned {
		t.Errorf("the client of a weight under a hostile name is %+v", s)
	}
	if !seen["north"] || !seen["日本"] || !seen["others"] {
		t.Errorf("plain names are not kept as they are: %v", seen)
	}
}

// members are the claims of a token.
type members map[string]string

// Lookup implements headgate.Values.
func (m members) Lookup(name string) (string, bool) {
	v, ok := m[name]
	return v, ok
}

// tokens accepts one token, and counts its calls.
type tokens struct{ asked int }

// Verify implements rule.Tokens.
func (k *tokens) Verify(token string) (headgate.Values, bool) {
	k.asked++
	return members{"sub": "acct-7"}, token == "good"
}

// A token, a certificate or an address may name the client. The front learns which facts are needed,
// and each fact is derived once.
func TestWhoIsAClient(t *testing.T) {
	known := &tokens{}
	identity := &rule.Identity{Tokens: known, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	byClaim := byClient(t, "byclaim", "/p", perMinute(100))
	byClaim.Key = []rule.Part{partOf(t, "jwt:sub")}
	bearing := func(token string) *headgate.Request {
		req := request("/p", "x")
		req.Header = headers{"Authorization": "Bearer " + token, "X-Forwarded-For": "198.51.100.7"}
		return req
	}
	certified := bearing("good")
	certified.Subject = `CN=barley,O=Farms\, Ltd`
	for _, c := range []struct {
		part  string
		needs rule.Needs
		req   *headgate.Request
		want  string // "" is anonymous
	}{
		{"jwt:sub", rule.NeedClaims, bearing("good"), "acct-7"},
		{"jwt:sub", rule.NeedClaims, bearing("forged"), ""},
		{"jwt:azp", rule.NeedClaims, bearing("good"), ""},
		{"mtls_subject", rule.NeedSubject, certified, `CN=barley,O=Farms\, Ltd`},
		{"mtls_subject", rule.NeedSubject, bearing("good"), ""},
		{"ip", rule.NeedIP, bearing("good"), "192.0.2.7"},
		{"xff_ip", rule.NeedXFFIP | rule.NeedIP, bearing("good"), "198.51.100.7"},
		{"header:X-Forwarded-For", 0, bearing("good"), "198.51.100.7"},
	} {
		for _, mode := range []guard.Mode{guard.Enforce, guard.Shadow, guard.Off} {
			g, _, _ := sharing(t, guard.Config{
				Identity: identity, Rules: []guard.Rule{byClaim},
				FairShare: among(t, func(f *guard.FairShare) { f.Client, f.Mode, f.Weights = partOf(t, c.part), mode, nil }),
			})
			want := rule.NeedClaims
			if mode != guard.Off {
				want |= c.needs
			}
			if needs := g.Needs(); needs != want {
				t.Errorf("%s, %v: needs %b, want %b", c.part, mode, needs, want)
			}
			known.asked = 0
			req := *c.req
			decide(t, g, &req)
			if shares, _ := g.Shares(); mode != guard.Off && (c.want == "" && len(shares.Clients) > 0 || c.want != "" && shareOf(t, g, c.want).Admitted != 1) {
				t.Errorf("%s, %v: shares %+v, want %q", c.part, mode, shares.Clients, c.want)
			}
			// A refusal before the rules derives no facts for the rules.
			once := 1
			if mode == guard.Enforce && c.want == "" && c.part != "jwt:sub" && c.part != "jwt:azp" {
				once = 0
			}
			if known.asked != once {
				t.Errorf("%s, %v: the token was verified %d times, want %d", c.part, mode, known.asked, once)
			}
		}
	}
}

// An allowed request gets the limit with the smallest remaining part: its share or a rule.
func TestClosestOfShareAndRules(t *testing.T) {
	for limit, want := range map[int64]string{10: guard.FairShareName, 2: "rule"} {
		g, _, _ := sharing(t, guard.Config{
			FairShare: among(t, func(f *guard.FairShare) { f.Capacity = 10 }), Rules: []guard.Rule{byClient(t, "rule", "/p", perMinute(limit))},
		})
		if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow || len(a.Results) != 2 || a.Closest().Policy != want {
			t.Errorf("4 of 5 left of the share, and of %d all but one: the closest is %s, want %s", limit, a.Closest().Policy, want)
		}
	}
	// Share and rule both refuse. The answer says that the request can never pass.
	g, _, _ := sharing(t, guard.Config{FairShare: among(t), Rules: []guard.Rule{byClient(t, "closed", "/p", headgate.Limit{Count: 1, Per: time.Hour})}, Independent: true})
	for range 2 {
		if a := decide(t, g, request("/p", "")); a.Closest().Decision.Reason != headgate.AnonymousClient || a.RetryAfter() != 0 {
			t.Errorf("anonymous: %+v", a.Closest())
		}
	}
}

// Fair share decides without the store, because it counts in this process. When a fallback then
// refuses, the share is returned.
func TestShareWithoutStore(t *testing.T) {
	open, closed := byClient(t, "open", "/open", perMinute(1)), byClient(t, "closed", "/closed", perMinute(1))
	open.Fallback = guard.FallbackAllow
	g, _, _ := sharing(t, guard.Config{FairShare: among(t), Store: deaf{}, Rules: []guard.Rule{open, closed}})
	for i, c := range []struct {
		path     string
		verdict  headgate.Verdict
		policy   string
		admitted int64
		refused  int64
	}{
		{"/closed", headgate.Deny, "closed", 0, 0},
		{"/open", headgate.Allow, guard.FairShareName, 1, 0},
		{"/open", headgate.Allow, guard.FairShareName, 2, 0},
		{"/open", headgate.Deny, guard.FairShareName, 2, 1},
	} {
		a := decide(t, g, request(c.path, "a"))
		if a.Verdict != c.verdict || a.Closest().Policy != c.policy || a.Results[0].Fallback {
			t.Errorf("request %d: %v by %s, fallback of fair share %v", i, a.Verdict, a.Closest().Policy, a.Results[0].Fallback)
		}
		counts(t, g, "a", c.admitted, c.refused)
	}
	shadow, _, _ := sharing(t, guard.Config{FairShare: among(t, inShadow), Store: deaf{}, Rules: []guard.Rule{open}})
	if a := decide(t, shadow, request("/open", "a")); len(a.Results) != 2 || a.Results[1].Decision.Reason != headgate.WithinLimit || a.Results[1].Fallback {
		t.Errorf("in shadow: %+v", a.Results)
	}
}

// A guard without rules needs no store. With rules, an error names the missing store.
func TestNoStore(t *testing.T) {
	off := byClient(t, "off", "/p", perMinute(1))
	off.Mode = guard.Off
	g, err := guard.New(guard.Config{FairShare: among(t), Rules: []guard.Rule{off}})
	if err != nil {
		t.Fatal(err)
	}
	if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow || g.Store() != nil {
		t.Errorf("%v, store %v", a.Verdict, g.Store())
	}
	if err := g.Cancel(t.Context(), decide(t, g, request("/p", "b"))); err != nil {
		t.Error(err)
	}
	if bans, more := g.Bans(time.Now()); len(bans) > 0 || more {
		t.Errorf("bans %v", bans)
	}
	if lifted, err := g.Lift(t.Context(), "00"); lifted || err != nil {
		t.Errorf("Lift gives %v, %v", lifted, err)
	}
	rules := guard.Config{FairShare: among(t), Rules: []guard.Rule{byClient(t, "product", "/p", perMinute(1))}}
	for name, err := range map[string]error{"New": newError(rules), "Reload": g.Reload(rules)} {
		if !errors.Is(err, guard.ErrNoStore) || !strings.Contains(err.Error(), `rule "product"`) || !strings.Contains(err.Error(), "memory.New") {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if empty, err := guard.New(guard.Config{}); err != nil || decide(t, empty, request("/p", "a")).Verdict != headgate.Allow {
		t.Errorf("a guard of nothing: %v", err)
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(guard.Config{Store: store}); err == nil {
		t.Error("a reload brings a store")
	}
}

// An invalid fair share is refused with the fix. A failed reload changes nothing.
func TestFaultyFairShare(t *testing.T) {
	g, _, _ := sharing(t, guard.Config{FairShare: among(t)})
	decide(t, g, request("/p", "a"))
	for want, change := range map[string]func(*guard.FairShare){
		"it has no client":       func(f *guard.FairShare) { f.Client = rule.Part{} },
		"all names no client":    func(f *guard.FairShare) { f.Client = partOf(t, "all") },
		"mode 3 is not known":    func(f *guard.FairShare) { f.Mode = 3 },
		"above the greatest":     func(f *guard.FairShare) { f.Cost = headgate.MaxUnits + 1 },
		"cost is negative":       func(f *guard.FairShare) { f.MaxCost = -1 },
		`write "X-Cost"`:         func(f *guard.FairShare) { f.CostHeader = "x-cost" },
		`write "X-Request-Id"`:   func(f *guard.FairShare) { f.IDHeader = "X-Request-ID" },
		"set IDHeader":           func(f *guard.FairShare) { f.CountOnce = true },
		"Capacity is -1":         func(f *guard.FairShare) { f.Capacity = -1 },
		"Cycle is 0s":            func(f *guard.FairShare) { f.Cycle = 0 },
		"the weight of client":   func(f *guard.FairShare) { f.Weights = map[string]int64{"a": 0} },
		"Weights has 2 clients:": func(f *guard.FairShare) { f.MaxClients = 1 },
	} {
		c := guard.Config{FairShare: among(t, change), Store: g.Store()}
		for name, err := range map[string]error{"New": newError(c), "Reload": g.Reload(c)} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "guard: fair share: ") {
				t.Errorf("%s gives %v, want an error with %q", name, err, want)
			}
		}
	}
	named := guard.Config{FairShare: among(t), Store: g.Store(), Rules: []guard.Rule{byClient(t, guard.FairShareName, "/p", perMinute(1))}}
	for name, err := range map[string]error{"New": newError(named), "Reload": g.Reload(named)} {
		if err == nil || !strings.Contains(err.Error(), "choose another") {
			t.Errorf("%s of a rule of that name gives %v", name, err)
		}
	}
	broken := guard.Config{
		FairShare: among(t, func(f *guard.FairShare) { f.Capacity = 0 }), Store: g.Store(), Rules: []guard.Rule{byClient(t, "none", "/p")},
	}
	if err := g.Reload(broken); err == nil {
		t.Error("a rule without limits is taken")
	}
	if shares, _ := g.Shares(); shares.Capacity != 4 || shares.Admitted != 1 {
		t.Errorf("after reloads that failed: %+v", shares)
	}
	if _, err := guard.NewFairShare(4, "heather:X"); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("NewFairShare gives %v", err)
	}
}
