package rule

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
)

// Each case is a key part, the values with their own limits, and requests. Each request
// has the position of its value, or -1 for no value.
func TestOverridesFind(t *testing.T) {
	long := strings.Repeat("x", 500)
	client := func(id string) *headgate.Request { return &headgate.Request{Header: sent{"X-Id": id}} }
	from := func(ip string) *headgate.Request { return &headgate.Request{IP: addr(ip)} }
	type find struct {
		why  string
		req  *headgate.Request
		want int
	}
	for _, c := range []struct {
		part   string
		values []string
		finds  []find
	}{
		{"header:X-Id", []string{"a", "customer-42", " inner space "[1:12], long, "*"}, []find{
			{"the first", client("a"), 0},
			{"another", client("customer-42"), 1},
			{"values are case-sensitive", client("A"), -1},
			{"values are compared up to their end", client("customer-4"), -1},
			{"long values are compared", client(long), 3},
			{"long values are compared up to the last byte", client(long[1:] + "y"), -1},
			{"a star is an ordinary character", client("*"), 4},
			{"other values are not found", client("b"), -1},
			{"an empty value", client(""), -1},
			{"no header", &headgate.Request{}, -1},
			{"an absent header", &headgate.Request{Header: hesitant{}}, -1},
			{"a cookie is not a header", &headgate.Request{Cookie: sent{"X-Id": "a"}}, -1},
		}},
		{"ip", []string{"192.0.2.1", "192.0.2.2/32", "2001:db8::/64", "2001:db8:0:1::7", "::ffff:192.0.2.3", "::ffff:192.0.2.4/128"}, []find{
			{"an address", from("192.0.2.1"), 0},
			{"in IPv6", from("::ffff:192.0.2.1"), 0},
			{"a network of one address", from("192.0.2.2"), 1},
			{"a /64", from("2001:db8::1"), 2},
			{"the last address of a network", from("2001:db8::ffff:ffff:ffff:ffff"), 2},
			{"an address after a network", from("2001:db8:0:2::"), -1},
			{"an address stands for its /64", from("2001:db8:0:1::1"), 3},
			{"an address with a zone", from("2001:db8:0:1::1%eth0"), 3},
			{"IPv4 in IPv6 is IPv4", from("192.0.2.3"), 4},
			{"IPv4 in IPv6 as a network", from("192.0.2.4"), 5},
			{"another address", from("192.0.2.9"), -1},
			{"no address", &headgate.Request{}, -1},
		}},
		{"ip/24/56", []string{"192.0.2.0/24", "198.51.100.7", "2001:db8::/56"}, []find{
			{"a network", from("192.0.2.9"), 0},
			{"an address stands for its network", from("198.51.100.9"), 1},
			{"a network of IPv6", from("2001:db8:0:ff::1"), 2},
			{"another network", from("192.0.3.9"), -1},
		}},
		{"xff_ip", []string{"192.0.2.1", "192.0.2.2"}, []find{
			{"the sender", &headgate.Request{IP: addr("192.0.2.1"), XFFIP: addr("192.0.2.2")}, 1},
			{"the peer, without a client", from("192.0.2.1"), 0},
			{"a client that is not listed", &headgate.Request{IP: addr("192.0.2.1"), XFFIP: addr("192.0.2.3")}, -1},
		}},
		{"user_ip", []string{"192.0.2.1", "192.0.2.2"}, []find{
			{"the user", &headgate.Request{IP: addr("192.0.2.1"), UserIP: addr("192.0.2.2")}, 1},
			{"the peer, without a client", from("192.0.2.1"), 0},
		}},
		{"host", []string{"API.Example.com", "[2001:DB8::0:1]", "10.0.0.1"}, []find{
			{"hosts are case-insensitive", &headgate.Request{Host: "api.example.com"}, 0},
			{"IPv6 has one spelling", &headgate.Request{Host: "2001:db8::1"}, 1},
			{"IPv4", &headgate.Request{Host: "10.0.0.1"}, 2},
			{"another host", &headgate.Request{Host: "example.com"}, -1},
			{"no host", &headgate.Request{}, -1},
		}},
		{"method", []string{"GET", "PURGE"}, []find{
			{"a method", &headgate.Request{Method: "GET"}, 0},
			{"methods are case-sensitive", &headgate.Request{Method: "get"}, -1},
		}},
		{"path", []string{"/", "/a b"}, []find{
			{"the root", &headgate.Request{Path: "/"}, 0},
			{"a path", &headgate.Request{Path: "/a b"}, 1},
			{"below it", &headgate.Request{Path: "/a b/c"}, -1},
			{"no path", &headgate.Request{}, -1},
		}},
		{"region", []string{"NL", "europe"}, []find{
			{"a region", &headgate.Request{Region: "NL"}, 0},
			{"a region of another kind", &headgate.Request{Region: "europe"}, 1},
			{"nowhere", &headgate.Request{}, -1},
		}},
		{"mtls_subject", []string{"CN=a, O=b"}, []find{
			{"a subject", &headgate.Request{Subject: "CN=a, O=b"}, 0},
			{"no certificate", &headgate.Request{}, -1},
		}},
		{"jwt:sub", []string{"a"}, []find{
			{"a claim", &headgate.Request{Claims: sent{"sub": "a"}}, 0},
			{"another claim", &headgate.Request{Claims: sent{"aud": "a"}}, -1},
			{"no token", &headgate.Request{}, -1},
		}},
		{"descriptor:tenant", []string{" a\n"}, []find{
			{"an entry, compared exactly", &headgate.Request{Descriptors: sent{"tenant": " a\n"}.entries()}, 0},
			{"no entry", &headgate.Request{}, -1},
		}},
		{"cookie:s", []string{"a"}, []find{{"a cookie", &headgate.Request{Cookie: sent{"s": "a"}}, 0}}},
		{"all", nil, []find{{"everybody", get("/"), -1}}},
		{"ip", nil, []find{{"an empty list", from("192.0.2.1"), -1}, {"an invalid address", &headgate.Request{}, -1}}},
	} {
		o, err := NewOverrides(parts(t, c.part)[0], c.values)
		if err != nil {
			t.Errorf("%s: %v", c.part, err)
			continue
		}
		for _, f := range c.finds {
			index, ok := o.Find(f.req)
			if ok != (f.want >= 0) || ok && index != f.want {
				t.Errorf("%s, %s: found %d, %v, want %d", c.part, f.why, index, ok, f.want)
			}
			if n := testing.AllocsPerRun(10, func() { o.Find(f.req) }); n != 0 {
				t.Errorf("%s, %s: %v allocations", c.part, f.why, n)
			}
		}
	}
	var none *Overrides
	if _, ok := none.Find(get("/")); ok {
		t.Error("a nil Overrides found a value")
	}
}

func TestNewOverridesTeaches(t *testing.T) {
	const address = "write an address like 192.0.2.1 or 2001:db8::1, or a network like 2001:db8::/64"
	for _, c := range []struct {
		part   string
		values []string
		index  int
		want   string
	}{
		{"header:A", []string{"a", ""}, 1, `is empty: write the value that requests send`},
		{"header:A", []string{"a", "b", "a"}, 2, `"a" duplicates "a": remove one of them`},
		{"header:A", []string{"a "}, 0, `"a " is not a valid header value: remove line breaks and the space around the value`},
		{"cookie:A", []string{"gold plan", "gold%20plan"}, 1, `"gold%20plan" duplicates "gold plan": remove one of them`},
		{"cookie:A", []string{`" "`}, 0, `"\" \"" is no value of a cookie: write the value that requests send, with more than blanks and quotes`},
		{"cookie:A", []string{""}, 0, `is empty: write the value that requests send`},
		{"jwt:sub", []string{"a\n", "a\n"}, 1, `"a\n" duplicates "a\n": remove one of them`},
		{"all", []string{"a"}, 0, `"a" cannot override the part all, which has no values: remove overrides, or use another key`},
		{"ip", []string{""}, 0, `is empty: ` + address},
		{"ip", []string{"192.0.2.1", "::ffff:192.0.2.1"}, 1, `"::ffff:192.0.2.1" duplicates "192.0.2.1": remove one of them`},
		{"ip", []string{"192.0.2.1", "192.0.2.1/32"}, 1, `"192.0.2.1/32" duplicates "192.0.2.1": remove one of them`},
		{"ip/24", []string{"192.0.2.0/25"}, 0, `"192.0.2.0/25" is not one client: IPv4 addresses count by their /24: write 192.0.2.0/24`},
		{"ip/24", []string{"2001:db8::/56"}, 0, `"2001:db8::/56" is not one client: IPv6 addresses count by their /64: write 2001:db8::/64`},
		{"ip/24", []string{"192.0.2.1", "192.0.2.0/24"}, 1, `"192.0.2.0/24" duplicates "192.0.2.1": remove one of them`},
		{"xff_ip", []string{"2001:db8::1", "2001:db8::2"}, 1, `"2001:db8::2" duplicates "2001:db8::1": remove one of them`},
		{"ip", []string{"300.0.0.1"}, 0, `"300.0.0.1" is not an address: ` + address},
		{"ip", []string{"192.0.2.1:80"}, 0, `"192.0.2.1:80" is not an address: ` + address},
		{"user_ip", []string{"customer-42"}, 0, `"customer-42" is not an address: ` + address},
		{"ip", []string{"192.0.2.0/24"}, 0, `"192.0.2.0/24" covers more than one client: IPv4 addresses count one by one: write single addresses`},
		{"ip", []string{"::ffff:192.0.2.0/120"}, 0, `"::ffff:192.0.2.0/120" covers more than one client: IPv4 addresses count one by one: write single addresses`},
		{"ip", []string{"2001:db8::/48"}, 0, `"2001:db8::/48" is not one client: IPv6 addresses count by their /64: write 2001:db8::/64`},
		{"ip", []string{"2001:db8::1/128"}, 0, `"2001:db8::1/128" is not one client: IPv6 addresses count by their /64: write 2001:db8::/64`},
		{"ip", []string{"192.0.2.1/x"}, 0, `"192.0.2.1/x" is not a network: ` + address},
		{"ip", []string{"192.0.2.1/33"}, 0, `"192.0.2.1/33" is not a network: ` + address},
		{"ip", []string{"fe80::1%eth0"}, 0, `"fe80::1%eth0" has a zone, which is not supported: remove % and the text after it`},
		{"host", []string{"a.com", "A.com"}, 1, `"A.com" duplicates "a.com": remove one of them`},
		{"host", []string{"::1", "[0::1]"}, 1, `"[0::1]" duplicates "::1": remove one of them`},
		{"host", []string{"*.a.com"}, 0, `"*.a.com" is more than one host: write one host, like api.example.com`},
		{"host", []string{"a.com:80"}, 0, `"a.com:80" has a port: hosts are compared without port: write "a.com"`},
		{"method", []string{"get"}, 0, `"get" is never sent: methods are case-sensitive: write GET`},
		{"method", []string{"GET,PUT"}, 0, `"GET,PUT" is not a valid method: write a method like GET`},
		{"path", []string{"/a/*"}, 0, `"/a/*" is more than one path: write one path, like /v1/product, or "=/a/*" for exactly this text`},
		{"path", []string{"a"}, 0, `"a" does not begin with /: write "/a"`},
		{"region", []string{"nl"}, 0, `"nl" is never found: region codes are in upper case: write "NL"`},
	} {
		_, err := NewOverrides(parts(t, c.part)[0], c.values)
		bad, ok := errortype.As[*OverrideError](err)
		if want := "rule: overrides[" + string(rune('0'+c.index)) + "] " + c.want; !ok || bad.Index != c.index || err.Error() != want {
			t.Errorf("%s %q:\n got %v\nwant %s", c.part, c.values, err, want)
		}
	}
	if _, err := NewOverrides(Part{}, []string{"a"}); err == nil {
		t.Error("NewOverrides accepted the zero Part")
	}
}

// NewOverrides reports all faults at once, in the order of the values.
func TestNewOverridesFindsAllFaults(t *testing.T) {
	_, err := NewOverrides(parts(t, "ip")[0], []string{"x", "192.0.2.1", "", "192.0.2.1/32"})
	all, ok := err.(interface{ Unwrap() []error })
	if !ok || len(all.Unwrap()) != 3 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []int{0, 2, 3} {
		if bad, _ := errortype.As[*OverrideError](all.Unwrap()[i]); bad.Index != want {
			t.Errorf("fault %d: got value %d, want %d", i, bad.Index, want)
		}
	}
}

// carrying returns a request with the text as the value of the part, as a front sets it.
func carrying(p Part, text string) *headgate.Request {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			ip = prefix.Addr()
		}
	}
	values := sent{p.name: text}
	req := &headgate.Request{
		Method: text, Path: text, Host: strings.ToLower(text), Region: text, Subject: text,
		IP: ip, XFFIP: ip, UserIP: ip, Header: values, Cookie: sent{p.name: CookieForm(text)}, Claims: values, Descriptors: values.entries(),
	}
	if ip, err := netip.ParseAddr(strings.Trim(req.Host, "[]")); err == nil && ip.Is6() {
		req.Host = ip.String()
	}
	return req
}

// A request has a value when both count under one key. Values with one key are one value.
func FuzzOverrides(f *testing.F) {
	partsOf := []string{
		"header:A", "ip", "xff_ip", "user_ip", "host", "method", "path", "region", "mtls_subject", "jwt:a", "descriptor:a", "cookie:a",
	}
	f.Add(uint8(0), "a", "b", "a")
	f.Add(uint8(0), "a", strings.Repeat("x", 128), strings.Repeat("x", 129))
	f.Add(uint8(1), "192.0.2.1", "2001:db8::/64", "::ffff:192.0.2.1")
	f.Add(uint8(2), "2001:db8::1", "2001:db8::2", "2001:db8::3")
	f.Add(uint8(3), "::/64", "0.0.0.0", "")
	f.Add(uint8(4), "A.com", "[::1]", "a.com")
	f.Add(uint8(5), "GET", "Get", "get")
	f.Add(uint8(6), "/a", "/", "")
	f.Add(uint8(11), "0 ", "0", "%30")
	f.Fuzz(func(t *testing.T, kind uint8, first, second, text string) {
		p := parts(t, partsOf[int(kind)%len(partsOf)])[0]
		r := Rule{Name: "r", Key: []Part{p}}
		key := func(text string) string {
			key, _ := r.AppendKey(nil, carrying(p, text))
			return string(key)
		}
		values := []string{first, second}
		for i, value := range values {
			if _, err := NewOverrides(p, values[i:i+1]); err != nil {
				bad, ok := errortype.As[*OverrideError](err)
				if !ok || bad.Index != 0 || bad.Problem == "" || bad.Fix == "" || value == "a" && !p.isAddress() && p.kind != partPath && p.kind != partMethod {
					t.Errorf("%v %q gives %v", p, value, err)
				}
				return
			}
		}
		o, err := NewOverrides(p, values)
		if again := key(first) == key(second); (err != nil) != again {
			t.Fatalf("%v %q: same key is %v, but NewOverrides gives %v", p, values, again, err)
		}
		if err != nil {
			return
		}
		want := -1
		for i, value := range values {
			if key(value) == key(text) {
				want = i
			}
		}
		req := carrying(p, text)
		if got, ok := o.Find(req); ok != (want >= 0) || ok && got != want {
			t.Errorf("%v %q: Find(%q) = %d, %v, want %d as by its key", p, values, text, got, ok, want)
		}
	})
}

// TestCookiesHaveOneForm checks that overrides and names of clients of a cookie are found by the form that requests have.
func TestCookiesHaveOneForm(t *testing.T) {
	part := parts(t, "cookie:Plan")[0]
	for _, value := range []string{"gold plan", "gold%20plan", "gold+plan", `"gold plan"`} {
		o, err := NewOverrides(part, []string{value})
		if err != nil {
			t.Fatal(err)
		}
		if at, found := o.Find(&headgate.Request{Cookie: sent{"Plan": CookieForm("gold%20plan")}}); !found || at != 0 {
			t.Errorf("the override %q is not found", value)
		}
		if name, err := CustomerName(part, value); name != "gold+plan" || err != nil {
			t.Errorf("the name of %q is %q, %v", value, name, err)
		}
	}
}
