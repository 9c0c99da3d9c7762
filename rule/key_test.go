package rule

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
)

// Shared stores keep keys in this format. This test must fail when the format changes.
func TestKeyForm(t *testing.T) {
	req := &headgate.Request{
		Method: "GET", Host: "h", Path: "/p", IP: addr("192.0.2.1"),
		Header: sent{"X-Id": "a", "X-Long": strings.Repeat("x", 129), "X-Longer": strings.Repeat("xyz", 1000)}, Cookie: sent{"s": strings.Repeat("y", 128)},
		XFFIP: addr("198.51.100.7"), UserIP: addr("2001:db8::9"), Region: "NL", Subject: "CN=a",
		Claims: sent{"sub": "u"}, Descriptors: sent{"tenant": "t"}.entries(), Query: sent{"q": "v"},
	}
	digest := sha256.Sum256([]byte(strings.Repeat("x", 129)))
	longer := sha256.Sum256([]byte(strings.Repeat("xyz", 1000)))
	for _, c := range []struct {
		key  string
		want string
	}{
		{"all", "\x01r\x01"},
		{"ip", "\x01r\x02\x04\xc0\x00\x02\x01"},
		{"path", "\x01r\x03\x02/p"},
		{"method host", "\x01r\x04\x03GET\x05\x01h"},
		{"header:X-Id", "\x01r\x06\x04X-Id\x01a"},
		{"header:X-None", "\x01r\x06\x06X-None\xff"},
		{"header:X-Long", "\x01r\x06\x06X-Long\xfe" + string(digest[:16])},
		{"header:X-Longer", "\x01r\x06\x08X-Longer\xfe" + string(longer[:16])},
		{"cookie:s", "\x01r\x07\x01s\x80" + strings.Repeat("y", 128)},
		{"xff_ip", "\x01r\x08\x04\xc6\x33\x64\x07"},
		{"user_ip", "\x01r\x09\x08\x20\x01\x0d\xb8\x00\x00\x00\x00"},
		{"ip/24/56", "\x01r\x0f\x18\x38\x04\xc0\x00\x02\x00"},
		{"xff_ip/24", "\x01r\x10\x18\x40\x04\xc6\x33\x64\x00"},
		{"user_ip/29/29", "\x01r\x11\x1d\x1d\x08\x20\x01\x0d\xb8\x00\x00\x00\x00"},
		{"user_ip/128", "\x01r\x11\x20\x80\x10\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09"},
		{"region", "\x01r\x0a\x02NL"},
		{"mtls_subject", "\x01r\x0b\x04CN=a"},
		{"jwt:sub", "\x01r\x0c\x03sub\x01u"},
		{"jwt:none", "\x01r\x0c\x04none\xff"},
		{"descriptor:tenant", "\x01r\x0d\x06tenant\x01t"},
		{"path:{p}", "\x01r\x12\x01p\x01p"},
		{"host:{h} query:q", "\x01r\x13\x01h\x01h\x14\x01q\x01v"},
		{"query:none", "\x01r\x14\x04none\xff"},
	} {
		r := Rule{Name: "r", Key: parts(t, strings.Fields(c.key)...), Match: Match{Path: "/{p}", Hosts: []string{"{h}"}}}
		r.Key = r.BoundKey()
		if got, _ := r.AppendKey(nil, req); string(got) != c.want {
			t.Errorf("key %s is %q, want %q", c.key, got, c.want)
		}
	}
}

// Each case is two requests to one rule, and whether they count together.
func TestKeysTellApart(t *testing.T) {
	client := func(id string) *headgate.Request { return &headgate.Request{Header: sent{"X-Id": id}} }
	from := func(ip string) *headgate.Request { return &headgate.Request{IP: addr(ip)} }
	session := func(id string) *headgate.Request { return &headgate.Request{Cookie: sent{"s": id}, IP: addr("::1")} }
	long := strings.Repeat("x", 128)
	behind := func(ip, xff string) *headgate.Request { return &headgate.Request{IP: addr(ip), XFFIP: addr(xff)} }
	user := func(ip, user string) *headgate.Request { return &headgate.Request{IP: addr(ip), UserIP: addr(user)} }
	region := func(code string) *headgate.Request { return &headgate.Request{Region: code} }
	subject := func(text string) *headgate.Request { return &headgate.Request{Subject: text} }
	claim := func(sub string) *headgate.Request { return &headgate.Request{Claims: sent{"sub": sub}} }
	entry := func(tenant string) *headgate.Request {
		return &headgate.Request{Descriptors: sent{"tenant": tenant}.entries()}
	}

	for _, c := range []struct {
		why    string
		key    string
		a, b   *headgate.Request
		same   bool
		shared bool // whether b counts under a shared key
	}{
		{"one client", "header:X-Id", client("a"), client("a"), true, false},
		{"two clients", "header:X-Id", client("a"), client("b"), false, false},
		{"values are case-sensitive", "header:X-Id", client("a"), client("A"), false, false},
		{"the part all counts all clients", "all", client("a"), client("b"), true, false},

		{"two clients without a name", "header:X-Id", get("/"), &headgate.Request{Header: sent{}}, true, true},
		{"an empty name counts as missing", "header:X-Id", get("/"), client(""), true, true},
		{"a blank name is a name", "header:X-Id", get("/"), client(" "), false, false},
		{"no value equals a missing value", "header:X-Id", get("/"), client("\xff"), false, false},
		{"no text equals a missing value", "header:X-Id", get("/"), client("(missing)"), false, false},
		{"a cookie is not a header", "cookie:X-Id", get("/"), client("a"), true, true},
		{"no cookie, one address", "cookie:s ip", session(""), session(""), true, true},
		{"no cookie, two addresses", "cookie:s ip", session(""), from("192.0.2.1"), false, true},
		{"a missing cookie differs from every cookie", "cookie:s ip", session(""), session("x"), false, false},

		{"128 bytes are in the key unchanged", "header:X-Id", client(long), client(long[1:] + "y"), false, false},
		{"longer values count with all bytes", "header:X-Id", client(long + "a"), client(long + "b"), false, false},
		{"a longer value differs from its prefix", "header:X-Id", client(long + "a"), client(long), false, false},
		{"equal longer values share a key", "header:X-Id", client(long + "a"), client(long + "a"), true, false},

		{"IPv4 addresses count one by one", "ip", from("192.0.2.1"), from("192.0.2.2"), false, false},
		{"IPv4 in IPv6 is IPv4", "ip", from("192.0.2.1"), from("::ffff:192.0.2.1"), true, false},
		{"IPv4 in IPv6 addresses count one by one", "ip", from("::ffff:192.0.2.1"), from("::ffff:192.0.2.2"), false, false},
		{"IPv6 counts by /64", "ip", from("2001:db8::1"), from("2001:db8::ffff:0:0:1"), true, false},
		{"two neighboring /64 networks", "ip", from("2001:db8::1"), from("2001:db8:0:1::1"), false, false},
		{"zones do not count", "ip", from("fe80::1%eth0"), from("fe80::2%eth1"), true, false},
		{"no address", "ip", &headgate.Request{}, &headgate.Request{}, true, true},
		{"an invalid address counts as missing", "ip", from("::"), &headgate.Request{}, false, true},
		{"the address 0.0.0.0 is an address", "ip", from("0.0.0.0"), from("::"), false, false},

		{"a network of IPv4", "ip/24", from("192.0.2.1"), from("192.0.2.255"), true, false},
		{"two networks of IPv4", "ip/24", from("192.0.2.1"), from("192.0.3.1"), false, false},
		{"IPv4 in IPv6 counts by the network of IPv4", "ip/24", from("192.0.2.1"), from("::ffff:192.0.2.9"), true, false},
		{"ip/24 leaves IPv6 as it is", "ip/24", from("2001:db8::1"), from("2001:db8:0:1::1"), false, false},
		{"a network of IPv6", "ip/56", from("2001:db8::1"), from("2001:db8:0:ff::1"), true, false},
		{"two networks of IPv6", "ip/56", from("2001:db8::1"), from("2001:db8:0:100::1"), false, false},
		{"ip/56 leaves IPv4 as it is", "ip/56", from("192.0.2.1"), from("192.0.2.2"), false, false},
		{"each IPv6 address", "ip/128", from("2001:db8::1"), from("2001:db8::2"), false, false},
		{"a network of IPv4 is none of IPv6", "ip/32/32", from("32.1.13.184"), from("2001:db8::"), false, false},
		{"no address has no network", "ip/24", from("0.0.0.0"), &headgate.Request{}, false, true},
		{"networks of senders", "xff_ip/24", behind("10.0.0.1", "192.0.2.1"), behind("10.0.0.1", "192.0.2.2"), true, false},
		{"networks of users", "user_ip/24", user("10.0.0.1", "192.0.2.1"), user("10.0.0.1", "192.0.3.2"), false, false},

		{"senders behind one proxy", "xff_ip", behind("10.0.0.1", "192.0.2.1"), behind("10.0.0.1", "192.0.2.2"), false, false},
		{"one sender behind two proxies", "xff_ip", behind("10.0.0.1", "192.0.2.1"), behind("10.0.0.2", "192.0.2.1"), true, false},
		{"a client without a proxy is the peer", "xff_ip", behind("10.0.0.1", "192.0.2.1"), from("192.0.2.1"), true, false},
		{"senders count by /64", "xff_ip", behind("10.0.0.1", "2001:db8::1"), behind("10.0.0.1", "2001:db8::2"), true, false},
		{"no peer and no sender", "xff_ip", behind("10.0.0.1", "192.0.2.1"), &headgate.Request{}, false, true},
		{"ip is the address of the peer", "ip", behind("10.0.0.1", "192.0.2.1"), behind("10.0.0.1", "192.0.2.2"), true, false},
		{"users behind one proxy", "user_ip", user("10.0.0.1", "192.0.2.1"), user("10.0.0.1", "192.0.2.2"), false, false},
		{"a user without a header is the peer", "user_ip", user("10.0.0.1", "192.0.2.1"), from("192.0.2.1"), true, false},
		{"a client is not a user", "user_ip", behind("10.0.0.1", "192.0.2.1"), behind("10.0.0.1", "192.0.2.2"), true, false},

		{"regions", "region", region("NL"), region("DE"), false, false},
		{"two clients without a region", "region", region(""), region(""), true, true},
		{"a missing region differs from every region", "region", region("(unknown)"), region(""), false, true},
		{"subjects", "mtls_subject", subject("CN=a"), subject("CN=b"), false, false},
		{"no certificate", "mtls_subject", subject("CN=a"), subject(""), false, true},
		{"claims", "jwt:sub", claim("a"), claim("b"), false, false},
		{"an empty claim counts as missing", "jwt:sub", claim(""), &headgate.Request{}, true, true},
		{"entries", "descriptor:tenant", entry("a"), entry("b"), false, false},
		{"one entry", "descriptor:tenant", entry("a"), entry("a"), true, false},
		{"an entry is not a claim", "jwt:sub", claim("a"), entry("a"), false, true},

		{"paths", "path", get("/a"), get("/b"), false, false},
		{"an empty path is a path", "path", get(""), get("/"), false, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := Rule{Name: "r", Key: parts(t, strings.Fields(c.key)...)}
			a, _ := r.AppendKey(nil, c.a)
			b, shared := r.AppendKey(nil, c.b)
			if bytes.Equal(a, b) != c.same || shared != c.shared {
				t.Errorf("keys %q and %q, shared %v", a, b, shared)
			}
			if textA, textB := r.KeyText(c.a), r.KeyText(c.b); (textA == textB) != c.same {
				t.Errorf("texts %s and %s", textA, textB)
			}
		})
	}
}

func TestKeyText(t *testing.T) {
	req := &headgate.Request{
		Method: "GET", Host: "api.example.com", Path: "/v1/\n\x1b[31m", IP: addr("2001:db8::1%eth0"),
		Header: sent{"X-Id": `a"b`, "X-Long": strings.Repeat("é", 100)}, Cookie: sent{"s": "\u202e"},
		XFFIP: addr("::ffff:192.0.2.7"), Subject: "CN=a\n", Claims: sent{"https://example.com/tenant": "t\x00"},
	}
	for _, c := range []struct{ key, want string }{
		{"all", `product all`},
		{"ip", `product ip=2001:db8::/64`},
		{"method host path", `product method="GET" host="api.example.com" path="/v1/\n\x1b[31m"`},
		{"header:X-Id cookie:s", `product header:X-Id="a\"b" cookie:s="\u202e"`},
		{"header:X-None", `product header:X-None=(missing)`},
		{"xff_ip user_ip", `product xff_ip=192.0.2.7 user_ip=2001:db8::/64`},
		{"xff_ip/24 user_ip/56 ip/128", `product xff_ip/24=192.0.2.0/24 user_ip/56=2001:db8::/56 ip/128=2001:db8::1/128`},
		{"region mtls_subject", `product region=(unknown) mtls_subject="CN=a\n"`},
		{"jwt:https://example.com/tenant descriptor:none", `product jwt:https://example.com/tenant="t\x00" descriptor:none=(missing)`},
		{"header:X-Long", `product header:X-Long="` + strings.Repeat("é", 48) + `"...(200 bytes, sha256 f42ec48e1e4b487e590e0b3d4e58437c)`},
	} {
		r := Rule{Name: "product", Key: parts(t, strings.Fields(c.key)...)}
		if got := r.KeyText(req); got != c.want {
			t.Errorf("key %s:\n got %s\nwant %s", c.key, got, c.want)
		}
	}
	r := Rule{Name: "r", Key: parts(t, "ip")}
	if got := r.KeyText(get("/")); got != "r ip=192.0.2.1" {
		t.Errorf("got %s", got)
	}
}

func TestAppendKeyKeepsWhatIsThere(t *testing.T) {
	r := Rule{Name: "r", Key: anyKey()}
	if key, _ := r.AppendKey([]byte("before"), get("/")); string(key) != "before\x01r\x01" {
		t.Errorf("got %q", key)
	}
}

func TestAppendKeyAllocatesNothing(t *testing.T) {
	req := get("/v1/product")
	req.Header = sent{"X-Id": "a", "X-Long": strings.Repeat("x", 9000)}
	req.Cookie = sent{}
	req.XFFIP, req.UserIP, req.Region, req.Subject = addr("192.0.2.7"), addr("2001:db8::1"), "NL", "CN=a"
	req.Claims, req.Descriptors = sent{"sub": strings.Repeat("x", 9000)}.entries(), sent{"tenant": "t"}.entries()
	room := make([]byte, 0, 512)
	for _, key := range []string{
		"all", "ip", "ip path header:X-Id", "method host cookie:none", "header:X-Long",
		"ip xff_ip user_ip", "ip/24 xff_ip/56 user_ip/24/56", "region mtls_subject", "jwt:sub descriptor:tenant jwt:none",
	} {
		r := Rule{Name: "product", Key: parts(t, strings.Fields(key)...)}
		if n := testing.AllocsPerRun(100, func() { r.AppendKey(room, req) }); n != 0 {
			t.Errorf("key %s: %v allocations", key, n)
		}
	}
}

// element is one part of a key in the twin of AppendKey.
type element struct {
	part    Part
	value   string
	missing bool
}

// plainKey is the twin of AppendKey. plainKey returns the key as a plain text without encoding.
func plainKey(r *Rule, req *headgate.Request) string {
	var all []element
	for _, p := range r.Key {
		e := element{part: p.unbound()}
		switch p.kind {
		case partNone, partAll, partCustomer:
		case partIP:
			e.value, e.missing = canonicalNetwork(req.IP, p), !req.IP.IsValid()
		case partPath:
			e.value = req.Path
		case partMethod:
			e.value = req.Method
		case partHost:
			e.value = req.Host
		case partHeader:
			e.value, _ = req.Header.Lookup(p.name)
			e.missing = e.value == ""
		case partCookie:
			e.value, _ = req.Cookie.Lookup(p.name)
			e.missing = e.value == ""
		case partXFFIP, partUserIP, partIPNet, partXFFNet, partUserNet:
			ip := req.IP
			if (p.kind == partXFFIP || p.kind == partXFFNet) && req.XFFIP.IsValid() {
				ip = req.XFFIP
			}
			if (p.kind == partUserIP || p.kind == partUserNet) && req.UserIP.IsValid() {
				ip = req.UserIP
			}
			e.value, e.missing = canonicalNetwork(ip, p), !ip.IsValid()
		case partRegion:
			e.value, e.missing = req.Region, req.Region == ""
		case partSubject:
			e.value, e.missing = req.Subject, req.Subject == ""
		case partClaim:
			e.value, _ = req.Claims.Lookup(p.name)
			e.missing = e.value == ""
		case partDescriptor:
			e.value, _ = req.Descriptors.Lookup(p.name)
			e.missing = e.value == ""
		case partQuery:
			e.value, _ = req.Query.Lookup(p.name)
			e.missing = e.value == ""
		case partModel, partJSON:
			if req.Body != nil {
				e.value, _ = req.Body.Fields.Lookup(cmp.Or(p.name, "model"))
			}
			e.missing = e.value == ""
		case partPathName: // of /{A}/{B}
			segments := append(strings.Split(strings.TrimPrefix(req.Path, "/"), "/"), "")
			e.value = segments[strings.Index("AB", p.name)]
			e.missing = e.value == ""
		case partHostName: // of {A}
			e.value = req.Host[strings.LastIndex(req.Host, ".")+1:]
			e.missing = e.value == ""
		}
		all = append(all, e)
	}
	return fmt.Sprintf("%q %#v", r.Name, all)
}

func canonicalNetwork(ip netip.Addr, p Part) string {
	v4, bits := 32, 64
	if p.v4 > 0 {
		v4, bits = int(p.v4), int(p.v6)
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = v4
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return ""
	}
	return prefix.String()
}

// Keys are equal exactly when the rule, the parts and the canonical values are equal.
func TestClientsNeverShareKeys(t *testing.T) {
	property.Check(t, func(t *property.T) {
		ruleA, reqA := drawKeyRule(t, "a"), drawKeyRequest(t, "a")
		ruleB, reqB := ruleA, reqA
		// Independent pairs are rarely equal, so the second one is often a changed copy.
		if property.Bool().Draw(t, "other rule") {
			ruleB = drawKeyRule(t, "b")
		}
		if property.Bool().Draw(t, "other request") {
			reqB = drawKeyRequest(t, "b")
		}
		keyA, _ := ruleA.AppendKey(nil, reqA)
		keyB, _ := ruleB.AppendKey(nil, reqB)
		if same := plainKey(ruleA, reqA) == plainKey(ruleB, reqB); bytes.Equal(keyA, keyB) != same {
			t.Fatalf("%s\n%s\nkeys %q\nand %q", plainKey(ruleA, reqA), plainKey(ruleB, reqB), keyA, keyB)
		}
	})
}

func drawKeyRule(t *property.T, label string) *Rule {
	texts := []string{
		"all", "ip", "path", "method", "host", "header:A", "header:B", "header:Ab", "cookie:A", "cookie:B",
		"xff_ip", "user_ip", "ip/24", "ip/24/56", "xff_ip/24", "user_ip/128", "region", "mtls_subject", "jwt:A", "jwt:Ab", "descriptor:A", "descriptor:B",
		"path:{A}", "path:{B}", "host:{A}", "query:A", "query:B",
	}
	r := &Rule{Name: property.SampledFrom([]string{"r", "r2", "rr", "r.A"}).Draw(t, label+" name")}
	for _, text := range property.DistinctSliceOfN(property.SampledFrom(texts), 1, MaxParts).Draw(t, label+" key") {
		p, err := ParsePart(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Key = append(r.Key, p)
	}
	r.Match = Match{Path: "/{A}/{B}", Hosts: []string{"{A}"}}
	r.Key = r.BoundKey()
	return r
}

// drawKeyRequest draws values that look like pieces of keys.
func drawKeyRequest(t *property.T, label string) *headgate.Request {
	value := property.OneOf(
		property.SampledFrom([]string{
			"", "a", "ab", "\x01a", "\x02", "\xff", "\xfe", "\x06\x01A\x01a", "(missing)",
			strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 128) + "y",
		}),
		property.String(),
	)
	texts := func(name string) sent {
		return property.MapOfN(property.SampledFrom([]string{"A", "B", "Ab"}), value, 0, 3).Draw(t, label+name)
	}
	ips := []string{"", "192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "fe80::1%a", "fe80::1%b", "::"}
	req := &headgate.Request{
		Path: property.OneOf(value, property.SampledFrom([]string{"/a/b", "/ab/a", "/b/a"})).Draw(t, label+" path"), Query: texts(" query"), Method: value.Draw(t, label+" method"), Host: value.Draw(t, label+" host"),
		Header: texts(" headers"), Cookie: texts(" cookies"), Claims: texts(" claims"), Descriptors: texts(" descriptors").entries(),
		Region: value.Draw(t, label+" region"), Subject: value.Draw(t, label+" subject"),
	}
	for _, into := range []*netip.Addr{&req.IP, &req.XFFIP, &req.UserIP} {
		if ip := property.SampledFrom(ips).Draw(t, label+" ip"); ip != "" {
			*into = addr(ip)
		}
	}
	return req
}

// readKey decodes a key. Since a key can be decoded, no two combinations of values
// share a key.
func readKey(key []byte) (name string, elements []element, err error) {
	r := &keyReader{rest: key}
	name = r.name()
	for len(r.rest) > 0 {
		e := element{part: Part{kind: partKind(r.take(1)[0])}}
		switch e.part.kind {
		case partAll:
		case partIPNet, partXFFNet, partUserNet:
			lengths := r.take(2)
			e.part.v4, e.part.v6 = lengths[0], lengths[1]
			e.value, e.missing = r.value()
		case partHeader, partCookie, partClaim, partDescriptor, partPathName, partHostName, partQuery, partJSON:
			e.part.name = r.name()
			e.value, e.missing = r.value()
		default:
			e.value, e.missing = r.value()
		}
		elements = append(elements, e)
	}
	return name, elements, r.err
}

type keyReader struct {
	rest []byte
	err  error
}

func (r *keyReader) take(n int) []byte {
	if n > len(r.rest) {
		r.err = fmt.Errorf("the key needs %d bytes, but %d are left", n, len(r.rest))
		r.rest = nil
		return make([]byte, n)
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *keyReader) name() string {
	n, size := binary.Uvarint(r.rest)
	r.take(size)
	return string(r.take(int(n)))
}

func (r *keyReader) value() (value string, missing bool) {
	switch mark := r.take(1)[0]; mark {
	case markMissing:
		return "", true
	case markDigest:
		return "digest " + string(r.take(digestLength)), false
	default:
		return string(r.take(int(mark))), false
	}
}

func FuzzAppendKey(f *testing.F) {
	f.Add("product", "X-Id", "a", "s", "b", []byte{192, 0, 2, 1})
	f.Add("r", "A", "\xff\x07\x01s", "s", "", []byte{})
	f.Add("r", "A", strings.Repeat("x", 128), "s", strings.Repeat("y", 129), make([]byte, 16))
	f.Fuzz(func(t *testing.T, name, header, headerValue, cookie, cookieValue string, ip []byte) {
		h, errH := ParsePart("header:" + header)
		c, errC := ParsePart("cookie:" + cookie)
		if errH != nil || errC != nil {
			return
		}
		req := &headgate.Request{Header: sent{h.name: headerValue}, Cookie: sent{c.name: cookieValue}}
		req.IP, _ = netip.AddrFromSlice(ip)
		r := Rule{Name: name, Key: []Part{h, c, {kind: partIP}}}

		key, shared := r.AppendKey(nil, req)
		wantShared := headerValue == "" || cookieValue == "" || !req.IP.IsValid()
		if shared != wantShared {
			t.Errorf("shared is %v", shared)
		}
		if most := len(name) + len(header) + len(cookie) + 3*10 + 2*(1+maxValueLength) + 10; len(key) > most {
			t.Errorf("the key has %d bytes, more than %d", len(key), most)
		}
		gotName, got, err := readKey(key)
		if err != nil || gotName != name || len(got) != 3 {
			t.Fatalf("decoding key %q: got %q %v, %v", key, gotName, got, err)
		}
		want := []element{
			{h, boundedValue(headerValue), headerValue == ""},
			{c, boundedValue(cookieValue), cookieValue == ""},
		}
		if got[0] != want[0] || got[1] != want[1] || got[2].missing != !req.IP.IsValid() {
			t.Errorf("decoding key %q: got %v, want %v", key, got, want)
		}
		if text := r.KeyText(req); strings.ContainsAny(strings.TrimPrefix(text, name), "\r\n\x00\x1b") {
			t.Errorf("%q has line breaks", text)
		}
	})
}

func boundedValue(value string) string {
	if len(value) <= maxValueLength {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "digest " + string(sum[:digestLength])
}
