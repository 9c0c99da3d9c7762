package rule

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// Each case is a request, a key part, and the name of the client.
func TestClientNames(t *testing.T) {
	long, imitation := strings.Repeat("x", MaxClientName), "a~"+hexDigest("a\xff")
	for _, c := range []struct {
		why  string
		part string
		req  headgate.Request
		want string // "" for no client
	}{
		{"a header", "header:X-Id", headgate.Request{Header: sent{"X-Id": "home-loan"}}, "home-loan"},
		{"another header", "header:X-Id", headgate.Request{Header: sent{"X-Other": "home-loan"}}, ""},
		{"an empty header", "header:X-Id", headgate.Request{Header: sent{"X-Id": ""}}, ""},
		{"no headers", "header:X-Id", headgate.Request{}, ""},
		{"a cookie", "cookie:s", headgate.Request{Cookie: sent{"s": "a"}}, "a"},
		{"a subject", "mtls_subject", headgate.Request{Subject: `CN=barley,O=Farms\, Ltd`}, `CN=barley,O=Farms\, Ltd`},
		{"no certificate", "mtls_subject", headgate.Request{}, ""},
		{"a claim", "jwt:sub", headgate.Request{Claims: sent{"sub": "acct:7"}}, "acct:7"},
		{"no token", "jwt:sub", headgate.Request{}, ""},
		{"an entry", "descriptor:tenant", headgate.Request{Descriptors: sent{"tenant": "t"}.entries()}, "t"},
		{"an address", "ip", headgate.Request{IP: addr("192.0.2.1")}, "192.0.2.1"},
		{"IPv4 in IPv6", "ip", headgate.Request{IP: addr("::ffff:192.0.2.1")}, "192.0.2.1"},
		{"IPv6 by its /64", "ip", headgate.Request{IP: addr("2001:db8::9")}, "2001:db8::/64"},
		{"a network of IPv4", "ip/24", headgate.Request{IP: addr("192.0.2.1")}, "192.0.2.0/24"},
		{"a network of IPv6", "xff_ip/24/56", headgate.Request{IP: addr("10.0.0.1"), XFFIP: addr("2001:db8::9")}, "2001:db8::/56"},
		{"an IPv4 address beside networks of IPv6", "ip/56", headgate.Request{IP: addr("192.0.2.1")}, "192.0.2.1"},
		{"no address", "ip", headgate.Request{}, ""},
		{"a sender", "xff_ip", headgate.Request{IP: addr("10.0.0.1"), XFFIP: addr("192.0.2.1")}, "192.0.2.1"},
		{"a user", "user_ip", headgate.Request{IP: addr("10.0.0.1"), UserIP: addr("192.0.2.1")}, "192.0.2.1"},
		{"a user without a header", "user_ip", headgate.Request{IP: addr("10.0.0.1")}, "10.0.0.1"},
		{"a region", "region", headgate.Request{Region: "NL"}, "NL"},
		{"nowhere", "region", headgate.Request{}, ""},
		{"a path", "path", headgate.Request{Path: "/v1"}, "/v1"},
		{"a method", "method", headgate.Request{Method: "GET"}, "GET"},
		{"a host", "host", headgate.Request{Host: "a.example"}, "a.example"},
		{"no host", "host", headgate.Request{}, ""},
		{"the part all has no client", "all", headgate.Request{Path: "/"}, ""},

		{"other scripts", "header:X-Id", headgate.Request{Header: sent{"X-Id": "Zürich 銀行"}}, "Zürich 銀行"},
		{"128 bytes", "header:X-Id", headgate.Request{Header: sent{"X-Id": long}}, long},
		{"129 bytes", "header:X-Id", headgate.Request{Header: sent{"X-Id": long + "x"}}, long[:64] + "~0ec9eb33e74510bcdd1f2ea55206e82f"},
		{"a control character", "jwt:sub", headgate.Request{Claims: sent{"sub": "a\nb"}}, "a~" + hexDigest("a\nb")},
		{"a terminal escape sequence", "jwt:sub", headgate.Request{Claims: sent{"sub": "\x1b[2J"}}, "~" + hexDigest("\x1b[2J")},
		{"text that runs from right to left", "jwt:sub", headgate.Request{Claims: sent{"sub": "ab\u202ecd"}}, "ab~" + hexDigest("ab\u202ecd")},
		{"a line separator that is not a control character", "jwt:sub", headgate.Request{Claims: sent{"sub": "a\u2028"}}, "a~" + hexDigest("a\u2028")},
		{"no UTF-8", "header:X-Id", headgate.Request{Header: sent{"X-Id": "a\xff"}}, "a~" + hexDigest("a\xff")},
		{"U+FFFD is a character", "header:X-Id", headgate.Request{Header: sent{"X-Id": "a\ufffd"}}, "a\ufffd"},
		{"a text in the form of a digest", "header:X-Id", headgate.Request{Header: sent{"X-Id": imitation}}, imitation + "~" + hexDigest(imitation)},
		{"a digest in capitals", "header:X-Id", headgate.Request{Header: sent{"X-Id": "~" + strings.Repeat("A", 32)}}, "~" + strings.Repeat("A", 32)},
		{"a digest of 31 digits", "header:X-Id", headgate.Request{Header: sent{"X-Id": "~" + strings.Repeat("a", 31)}}, "~" + strings.Repeat("a", 31)},
	} {
		before := []byte("before ")
		name, ok := parts(t, c.part)[0].AppendClient(before, &c.req)
		if got := strings.TrimPrefix(string(name), "before "); got != c.want || ok != (c.want != "") || len(name) != len(got)+7 {
			t.Errorf("%s: %q, %v, want %q", c.why, name, ok, c.want)
		}
	}
	if name, ok := (Part{}).AppendClient(nil, get("/")); ok || len(name) > 0 {
		t.Errorf("got a client name %q, want none", name)
	}
}

func hexDigest(text string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range digest(text) {
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// A character that crosses the length limit is dropped completely.
func TestClientNameCutsNoCharacter(t *testing.T) {
	text := strings.Repeat("é", 100)
	if got, want := ClientName(text), strings.Repeat("é", 32)+"~"+hexDigest(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	text = "x" + text
	if got, want := ClientName(text), "x"+strings.Repeat("é", 31)+"~"+hexDigest(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAppendClientAllocatesNothing(t *testing.T) {
	dst := make([]byte, 0, 256)
	for text, req := range map[string]*headgate.Request{
		"header:X-Id":  {Header: sent{"X-Id": "home-loan"}},
		"jwt:sub":      {Claims: sent{"sub": strings.Repeat("\x00", 1000)}},
		"ip":           {IP: addr("2001:db8::9")},
		"mtls_subject": {Subject: "CN=a"},
	} {
		part := parts(t, text)[0]
		if n := testing.AllocsPerRun(100, func() { part.AppendClient(dst, req) }); n != 0 {
			t.Errorf("%s takes %v allocations, want 0", text, n)
		}
	}
}

// Two different texts have two different names. Names have a maximum length and are
// printable. A client that sends a replacement name as its text gets another name.
func FuzzClientName(f *testing.F) {
	for _, seed := range []string{"", "a", "a\x00", "a~" + strings.Repeat("0", 32), "é", "\xc3", "\u202e", strings.Repeat("y", 200)} {
		f.Add(seed, seed+"~")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		first, second := ClientName(a), ClientName(b)
		if a != b && first == second {
			t.Errorf("%q and %q have the same name %q", a, b, first)
		}
		for _, name := range []string{first, second} {
			if len(name) > MaxClientName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("invalid name %q for %q or %q", name, a, b)
			}
		}
		if first != a && ClientName(first) == first {
			t.Errorf("%q has the same name as %q", a, first)
		}
	})
}
