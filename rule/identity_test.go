package rule

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// fields are headers that may have several lines.
type fields map[string][]string

func (f fields) Lookup(name string) (string, bool) {
	if len(f[name]) == 0 {
		return "", false
	}
	return f[name][0], true
}

func (f fields) Lines(name string) []string { return f[name] }

func xff(lines ...string) fields { return fields{"X-Forwarded-For": lines} }

// atlas is a fake Regions that counts its calls.
type atlas struct {
	regions map[netip.Addr]string
	asked   int
}

func (a *atlas) Region(ip netip.Addr) (string, bool) {
	a.asked++
	code, known := a.regions[ip]
	return code, known
}

// ring is a fake Tokens with the claims of valid tokens.
type ring struct {
	good  map[string]sent
	asked int
}

func (r *ring) Verify(token string) (headgate.Values, bool) {
	r.asked++
	claims, good := r.good[token]
	return claims, good
}

func networks(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestTrusts(t *testing.T) {
	id := &Identity{TrustedProxies: networks("10.0.0.0/8", "192.0.2.1/32", "2001:db8:1::/48", "fe80::/10")}
	unix := &Identity{TrustUnix: true}
	for _, c := range []struct {
		why  string
		id   *Identity
		peer string // "" is a peer on a Unix socket
		want bool
	}{
		{"a peer within a network", id, "10.255.0.1", true},
		{"a peer outside", id, "11.0.0.1", false},
		{"a single address", id, "192.0.2.1", true},
		{"its neighbour", id, "192.0.2.2", false},
		{"IPv4 in IPv6 is IPv4", id, "::ffff:10.0.0.1", true},
		{"IPv4 in IPv6 outside the networks", id, "::ffff:11.0.0.1", false},
		{"a peer of IPv6", id, "2001:db8:1::7", true},
		{"another", id, "2001:db8:2::7", false},
		{"zones do not count", id, "fe80::1%eth0", true},
		{"a Unix socket, with trusted addresses only", id, "", false},
		{"a unix socket", unix, "", true},
		{"an address, with only unix trusted", unix, "127.0.0.1", false},
		{"a nil Identity does not trust an address", nil, "127.0.0.1", false},
		{"a nil Identity does not trust a Unix socket", nil, "", false},
	} {
		var peer netip.Addr
		if c.peer != "" {
			peer = addr(c.peer)
		}
		if got := c.id.Trusts(peer); got != c.want {
			t.Errorf("%s: Trusts(%q) = %v", c.why, c.peer, got)
		}
	}
}

func TestNeeds(t *testing.T) {
	for key, want := range map[string]Needs{
		"all":                    0,
		"path method":            0,
		"ip path method":         NeedIP,
		"host header:A cookie:A": NeedHost,
		"descriptor:a":           0,
		"xff_ip":                 NeedXFFIP | NeedIP,
		"path user_ip":           NeedUserIP | NeedIP,
		"region":                 NeedRegion | NeedIP,
		"mtls_subject":           NeedSubject,
		"jwt:sub jwt:tenant":     NeedClaims,
		"jwt:sub region xff_ip":  NeedXFFIP | NeedRegion | NeedClaims | NeedIP,
		"user_ip mtls_subject":   NeedUserIP | NeedSubject | NeedIP,
	} {
		r := Rule{Name: "r", Key: parts(t, strings.Fields(key)...)}
		if got := r.Needs(); got != want {
			t.Errorf("key %s needs %07b, want %07b", key, got, want)
		}
		r.Match.Hosts = []string{"a.example"}
		if got := r.Needs(); got != want|NeedHost {
			t.Errorf("key %s with a host needs %07b, want %07b", key, got, want|NeedHost)
		}
	}
}

// Resolve leaves values unchanged that no rule needs or that the front has set.
func TestResolveFillsWhatIsNeeded(t *testing.T) {
	const everything = NeedXFFIP | NeedUserIP | NeedRegion | NeedSubject | NeedClaims
	regions := &atlas{regions: map[netip.Addr]string{addr("192.0.2.7"): "NL", addr("192.0.2.8"): "DE", addr("10.0.0.1"): "FR"}}
	tokens := &ring{good: map[string]sent{"good": {"sub": "a"}}}
	id := &Identity{TrustedProxies: networks("10.0.0.0/8"), Regions: regions, Tokens: tokens}
	byUser := &Identity{TrustedProxies: id.TrustedProxies, UserIPHeaders: []string{"X-User"}, Regions: regions}
	header := fields{"X-Forwarded-For": {"192.0.2.7"}, "X-User": {"192.0.2.8"}, "Authorization": {"Bearer good"}}
	none := headgate.Request{}
	peer, sender, user := addr("10.0.0.1"), addr("192.0.2.7"), addr("192.0.2.8")

	for _, c := range []struct {
		why   string
		id    *Identity
		needs Needs
		front headgate.Request // values that the front has set
		want  headgate.Request
	}{
		{"nothing", id, 0, none, none},
		{"a subject, which only a front can set", id, NeedSubject, none, none},
		{"the sender", id, NeedXFFIP, none, headgate.Request{XFFIP: sender}},
		{"the user, without user-IP headers", id, NeedUserIP, none, headgate.Request{UserIP: peer}},
		{"the user", byUser, NeedUserIP, none, headgate.Request{UserIP: user}},
		{"the sender's region", id, NeedRegion, none, headgate.Request{Region: "NL"}},
		{"the user's region", byUser, NeedRegion, none, headgate.Request{Region: "DE"}},
		{"claims", id, NeedClaims, none, headgate.Request{Claims: sent{"sub": "a"}}},
		{"claims without Tokens", byUser, NeedClaims, none, none},
		{
			"everything", id, everything, none,
			headgate.Request{XFFIP: sender, UserIP: peer, Region: "NL", Claims: sent{"sub": "a"}},
		},
		{
			"all values, set by the front", id, everything,
			headgate.Request{XFFIP: user, UserIP: sender, Region: "XX", Claims: sent{"sub": "b"}, Subject: "CN=a"},
			headgate.Request{XFFIP: user, UserIP: sender, Region: "XX", Claims: sent{"sub": "b"}, Subject: "CN=a"},
		},
		{
			"the region of a client that the front has set", id, NeedRegion,
			headgate.Request{XFFIP: user},
			headgate.Request{XFFIP: user, Region: "DE"},
		},
		{
			"the region of a user that the front has set", byUser, NeedRegion,
			headgate.Request{UserIP: sender},
			headgate.Request{UserIP: sender, Region: "NL"},
		},
		{"all values, with a nil Identity", nil, everything, none, headgate.Request{XFFIP: peer, UserIP: peer}},
		{"all values, with an empty Identity", &Identity{}, everything, none, headgate.Request{XFFIP: peer, UserIP: peer}},
	} {
		got := c.front
		got.IP, got.Header = peer, header
		c.id.Resolve(&got, c.needs)
		gotClaims, _ := lookup(got.Claims, "sub")
		wantClaims, _ := lookup(c.want.Claims, "sub")
		if got.XFFIP != c.want.XFFIP || got.UserIP != c.want.UserIP || got.Region != c.want.Region ||
			(got.Claims == nil) != (c.want.Claims == nil) || gotClaims != wantClaims || got.Subject != c.want.Subject {
			t.Errorf("%s:\n got %+v\nwant %+v", c.why, got, c.want)
		}
	}
}

func TestResolveRegion(t *testing.T) {
	regions := &atlas{regions: map[netip.Addr]string{addr("192.0.2.7"): "NL"}}
	id := &Identity{Regions: regions, TrustUnix: true}
	for _, c := range []struct {
		why    string
		ip     string
		header headgate.Values
		want   string
		asked  int
	}{
		{"a known address", "192.0.2.7", nil, "NL", 1},
		{"IPv4 in IPv6 is IPv4", "::ffff:192.0.2.7", nil, "NL", 1},
		{"an address without a region", "192.0.2.9", nil, "", 1},
		{"a peer that sends its own region", "192.0.2.9", xff("192.0.2.7"), "", 1},
		{"a unix socket", "", nil, "", 0},
		{"the client behind a Unix socket", "", xff("192.0.2.7"), "NL", 1},
	} {
		req := &headgate.Request{Header: c.header}
		if c.ip != "" {
			req.IP = addr(c.ip)
		}
		regions.asked = 0
		if id.Resolve(req, NeedRegion); req.Region != c.want || regions.asked != c.asked {
			t.Errorf("%s: got region %q after %d lookups", c.why, req.Region, regions.asked)
		}
	}
}

// Resolve ignores a code that comes with ok false.
func TestResolveRegionIsKnownOrNot(t *testing.T) {
	req := get("/")
	id := &Identity{Regions: hesitant{}}
	if id.Resolve(req, NeedRegion); req.Region != "" {
		t.Errorf("region %q", req.Region)
	}
}

// hesitant is a fake Regions that returns a code and ok false.
type hesitant struct{}

func (hesitant) Region(netip.Addr) (string, bool)      { return "NL", false }
func (hesitant) Verify(string) (headgate.Values, bool) { return sent{"sub": "a"}, false }
func (hesitant) Lookup(string) (string, bool)          { return "a", false }

func TestResolveClaims(t *testing.T) {
	longest := strings.Repeat("a", maxToken)
	tokens := &ring{good: map[string]sent{"good": {"sub": "a"}, "aZ09-._~+/==": {"sub": "b"}, longest: {"sub": "long"}, longest + "a": {"sub": "no"}}}
	id := &Identity{Tokens: tokens}
	for _, c := range []struct {
		why   string
		lines []string
		want  string
		asked int
	}{
		{"no token", nil, "", 0},
		{"a good token", []string{"Bearer good"}, "a", 1},
		{"the scheme has no case", []string{"bEARER good"}, "a", 1},
		{"any number of spaces", []string{"Bearer   good"}, "a", 1},
		{"every valid character of a token", []string{"Bearer aZ09-._~+/=="}, "b", 1},
		{"a bad token", []string{"Bearer bad"}, "", 1},
		{"another scheme", []string{"Basic good"}, "", 0},
		{"a scheme with the same first letters", []string{"Bearers good"}, "", 0},
		{"a letter that looks like an ASCII letter", []string{"Вearer good"}, "", 0},
		{"no scheme", []string{"good"}, "", 0},
		{"no token after the scheme", []string{"Bearer"}, "", 0},
		{"no token after the spaces", []string{"Bearer   "}, "", 0},
		{"padding without a token", []string{"Bearer =="}, "", 0},
		{"padding inside the token", []string{"Bearer go=od"}, "", 0},
		{"two tokens", []string{"Bearer good better"}, "", 0},
		{"two tokens with a comma", []string{"Bearer good,good"}, "", 0},
		{"two lines", []string{"Bearer good", "Bearer good"}, "", 0},
		{"two lines, one empty", []string{"Bearer good", ""}, "", 0},
		{"a tab", []string{"Bearer\tgood"}, "", 0},
		{"a line break", []string{"Bearer good\n"}, "", 0},
		{"quotes", []string{`Bearer "good"`}, "", 0},
		{"the longest token", []string{"Bearer " + longest}, "long", 1},
		{"a longer one", []string{"Bearer " + longest + "a"}, "", 0},
		{"a megabyte", []string{"Bearer " + strings.Repeat("a", 1<<20)}, "", 0},
	} {
		tokens.asked = 0
		req := &headgate.Request{Header: fields{"Authorization": c.lines}}
		id.Resolve(req, NeedClaims)
		got, _ := lookup(req.Claims, "sub")
		if got != c.want || (req.Claims != nil) != (c.want != "") || tokens.asked != c.asked {
			t.Errorf("%s: got claims %v after %d verifications", c.why, req.Claims, tokens.asked)
		}
	}
	one := &headgate.Request{Header: sent{"Authorization": "Bearer good"}}
	if id.Resolve(one, NeedClaims); one.Claims == nil {
		t.Error("got no claims from a front that knows one line")
	}
	nothing := &headgate.Request{}
	if id.Resolve(nothing, NeedClaims); nothing.Claims != nil {
		t.Error("got claims from a request without headers")
	}
	bad := &headgate.Request{Header: sent{"Authorization": "Bearer good"}}
	if (&Identity{Tokens: hesitant{}}).Resolve(bad, NeedClaims); bad.Claims != nil {
		t.Error("got claims of an invalid token")
	}
}

func TestResolveAllocatesNothing(t *testing.T) {
	id := &Identity{
		TrustedProxies: networks("10.0.0.0/8", "2001:db8:1::/48"), UserIPHeaders: []string{"X-None", "X-User"},
		Regions: &atlas{}, Tokens: &ring{},
	}
	var none *Identity
	for why, header := range map[string]headgate.Values{
		"no header": nil,
		"a chain":   fields{"X-Forwarded-For": {"198.51.100.1, 192.0.2.7", "10.0.0.2:80, [2001:db8:1::7]:80"}, "X-User": {"2001:db8::1.2.3.4"}},
		"garbage":   fields{"X-Forwarded-For": {"1.2.3.4.5"}, "X-User": {"2001:db8::1::2"}, "Authorization": {"Bearer a.b.c"}},
		"long":      fields{"X-Forwarded-For": {strings.Repeat("10.0.0.1,", 10_000)}, "X-User": {strings.Repeat("x", 10_000)}},
		"one line":  sent{"X-Forwarded-For": "192.0.2.7", "X-User": "192.0.2.8", "Authorization": "Bearer a"},
	} {
		start := get("/")
		start.IP, start.Header = addr("10.0.0.1"), header
		n := testing.AllocsPerRun(100, func() {
			req := *start
			id.Resolve(&req, NeedXFFIP|NeedUserIP|NeedRegion|NeedClaims)
			req = *start
			none.Resolve(&req, NeedXFFIP|NeedUserIP|NeedRegion|NeedClaims)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", why, n)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	id := &Identity{TrustedProxies: networks("127.0.0.0/8", "10.0.0.0/8", "192.168.0.0/16", "fd00::/8"), UserIPHeaders: []string{"X-User"}}
	start := get("/")
	start.IP = addr("10.0.0.1")
	start.Header = fields{
		"X-Forwarded-For": {"198.51.100.1, 192.0.2.7, 10.0.0.2"}, "X-User": {"2001:db8::7"},
	}
	for name, needs := range map[string]Needs{"nothing": 0, "xff_ip": NeedXFFIP, "user_ip": NeedUserIP} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := *start
				id.Resolve(&req, needs)
			}
		})
	}
}
