package rule

import (
	"net/textproto"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/errortype"
)

func TestParsePart(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{"all", "all"},
		{"ip", "ip"},
		{"path", "path"},
		{"method", "method"},
		{"host", "host"},
		{"header:X-Client-Id", "header:X-Client-Id"},
		{"header:x-client-ID", "header:X-Client-Id"}, // header names are case-insensitive
		{"header:x-1a_b", "header:X-1a_b"},
		{"header:X-Forwarded-For", "header:X-Forwarded-For"},
		{"cookie:session", "cookie:session"},
		{"cookie:SessionID", "cookie:SessionID"}, // cookie names are case-sensitive
		{"cookie:__Host-id", "cookie:__Host-id"},
		{"xff_ip", "xff_ip"},
		{"user_ip", "user_ip"},
		{"region", "region"},
		{"mtls_subject", "mtls_subject"},
		{"jwt:sub", "jwt:sub"},
		{"jwt:Sub", "jwt:Sub"}, // claim names are case-sensitive
		{"jwt:https://example.com/tenant", "jwt:https://example.com/tenant"},
		{"jwt:a=b:c", "jwt:a=b:c"},
		{"jwt:größe", "jwt:größe"},
		{"ip/24", "ip/24"},
		{"ip/56", "ip/56"},
		{"xff_ip/24/56", "xff_ip/24/56"},
		{"user_ip/32/56", "user_ip/56"},
		{"ip/1/128", "ip/1/128"},
		{"ip/32/32", "ip/32/32"}, // an IPv6 length that is no more than 32 needs both
		{"ip/24/64", "ip/24"},
		{"ip/32", "ip"}, // the usual lengths
		{"ip/64", "ip"},
		{"user_ip/32/64", "user_ip"},
		{"descriptor:remote_address", "descriptor:remote_address"},
		{"path:{id}", "path:{id}"},
		{"path:{user-id.v_1}", "path:{user-id.v_1}"},
		{"host:{Tenant}", "host:{Tenant}"}, // names are case-sensitive
		{"query:api_key", "query:api_key"},
		{"query:filter[user]", "query:filter[user]"},
		{"descriptor:" + strings.Repeat("a", 128), "descriptor:" + strings.Repeat("a", 128)},
	} {
		p, err := ParsePart(c.text)
		if err != nil || p.String() != c.want {
			t.Errorf("ParsePart(%q) = %v, %v; want %s", c.text, p, err, c.want)
		}
		if again, err := ParsePart(p.String()); err != nil || again != p {
			t.Errorf("%v reads as %v, %v", p, again, err)
		}
	}
	if got := (Part{}).String(); got != "none" {
		t.Errorf("the zero Part is %q", got)
	}
}

func TestParsePartTeaches(t *testing.T) {
	const known = "use one of all, ip, xff_ip, user_ip, ip/24/56, region, path, path:{NAME}, method, host, host:{NAME}, " +
		"header:NAME, cookie:NAME, query:NAME, model, json:FIELD, mtls_subject, jwt:CLAIM, descriptor:NAME"
	for _, c := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, `rule: key part "" is not known: ` + known},
		{"IP", 0, `rule: key part "IP" is not known: did you mean ip? ` + known},
		{"hots", 0, `rule: key part "hots" is not known: did you mean host? ` + known},
		{"headers:X-Id", 0, `rule: key part "headers:X-Id" is not known: did you mean header? ` + known},
		{"user-ip", 0, `rule: key part "user-ip" is not known: did you mean user_ip? ` + known},
		{"X-Client-Id", 0, `rule: key part "X-Client-Id" is not known: ` + known},
		{"header", 6, `rule: key part header has no name: write it like header:X-Client-Id`},
		{"cookie:", 6, `rule: key part cookie has no name: write it like cookie:session`},
		{"header: X-Id", 7, `rule: header name " X-Id" contains " ": write only letters, digits, - and _, like header:X-Client-Id`},
		{"header:X-Id:", 11, `rule: header name "X-Id:" contains ":": write only letters, digits, - and _, like header:X-Client-Id`},
		{"cookie:a=b", 8, `rule: cookie name "a=b" contains "=": write only letters, digits, - and _, like cookie:session`},
		{"header:X-\xff", 9, `rule: header name "X-\xff" contains "\xff": write only letters, digits, - and _, like header:X-Client-Id`},
		{"cookie:" + strings.Repeat("a", 129), 135, `rule: cookie name is 129 bytes long: use at most 128`},
		{"header:host", 0, `rule: key part header:Host is never present: write host`},
		{"ip:1.2.3.4", 2, `rule: key part ip takes no name: write ip`},
		{"ip/", 2, `rule: key part "ip/" has a length of a network that is no number: write it like ip/24 for IPv4, ip/56 for IPv6, or ip/24/56 for both`},
		{"ip/24,56", 2, `rule: key part "ip/24,56" has a length of a network that is no number: write it like ip/24 for IPv4, ip/56 for IPv6, or ip/24/56 for both`},
		{"xff_ip/24/56/64", 6, `rule: key part "xff_ip/24/56/64" has 3 lengths: write it like xff_ip/24 for IPv4, xff_ip/56 for IPv6, or xff_ip/24/56 for both`},
		{"ip/0", 2, `rule: key part "ip/0" counts all addresses together: write all`},
		{"ip/56/24", 2, `rule: key part "ip/56/24" has a length that no network has: IPv4 has /1 to /32, and IPv6 /1 to /128: write it like ip/24 for IPv4, ip/56 for IPv6, or ip/24/56 for both`},
		{"ip/129", 2, `rule: key part "ip/129" has a length that no network has: IPv4 has /1 to /32, and IPv6 /1 to /128: write it like ip/24 for IPv4, ip/56 for IPv6, or ip/24/56 for both`},
		{"path/24", 0, `rule: key part "path/24" is not known: ` + known},
		{"ip/24:a", 2, `rule: key part "ip/24:a" has a length of a network that is no number: write it like ip/24 for IPv4, ip/56 for IPv6, or ip/24/56 for both`},
		{"xff_ip:1", 6, `rule: key part xff_ip takes no name: write xff_ip`},
		{"region:NL", 6, `rule: key part region takes no name: write region`},
		{"mtls_subject:CN", 12, `rule: key part mtls_subject takes no name: write mtls_subject`},
		{"mtls-subject", 0, `rule: key part "mtls-subject" is not known: did you mean mtls_subject? ` + known},
		{"jwt", 3, `rule: key part jwt has no name: write it like jwt:sub`},
		{"descriptor:", 10, `rule: key part descriptor has no name: write it like descriptor:tenant`},
		{"jwt:my sub", 6, `rule: jwt name "my sub" contains " ": write only printable characters without spaces, like jwt:sub`},
		{"jwt:a\u2003b", 5, `rule: jwt name "a\u2003b" contains "\u2003": write only printable characters without spaces, like jwt:sub`},
		{"jwt:a\n", 5, `rule: jwt name "a\n" contains "\n": write only printable characters without spaces, like jwt:sub`},
		{"jwt:\u202ebus", 4, `rule: jwt name "\u202ebus" contains "\u202e": write only printable characters without spaces, like jwt:sub`},
		{"descriptor:é\xff", 13, `rule: descriptor name "é\xff" contains "\xff": write only printable characters without spaces, like descriptor:tenant`},
		{"path:id", 5, `rule: key part "path:id" is no name of a variable in braces: write path:{id} for what {id} stands for in match, or path for all of it`},
		{"path:{id...}", 5, `rule: key part "path:{id...}" is no name of a variable in braces: write path:{id} for what {id} stands for in match, or path for all of it`},
		{"path:{id:[0-9]+}", 5, `rule: key part "path:{id:[0-9]+}" is no name of a variable in braces: write path:{id} for what {id} stands for in match, or path for all of it`},
		{"host:", 5, `rule: key part "host:" is no name of a variable in braces: write host:{tenant} for what {tenant} stands for in match, or host for all of it`},
		{"host:{a b}", 5, `rule: key part "host:{a b}" is no name of a variable in braces: write host:{tenant} for what {tenant} stands for in match, or host for all of it`},
		{"query", 5, `rule: key part query has no name: write it like query:user`},
		{"query:a%5Bb", 6, `rule: query name "a%5Bb" is percent-encoded: write it decoded`},
		{"query:a b", 7, `rule: query name "a b" contains " ": write only printable characters without spaces, like query:user`},
		{"jwt:" + strings.Repeat("a", 129), 132, `rule: jwt name is 129 bytes long: use at most 128`},
	} {
		_, err := ParsePart(c.text)
		bad, ok := errortype.As[*ParseError](err)
		if !ok || bad.Offset != c.offset || bad.Error() != c.want {
			t.Errorf("ParsePart(%q):\n got %v\nwant %s, at %d", c.text, err, c.want, c.offset)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"host", "host", 0},
		{"", "host", 4},
		{"host", "", 4},
		{"hst", "host", 1},
		{"hoost", "host", 1},
		{"hots", "host", 2},
		{"kitten", "sitting", 3},
		{strings.Repeat("x", 1_000_000), "host", 64}, // edits cuts a long text
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits from %.20q: got %d to %q, want %d", c.a, got, c.b, c.want)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for _, c := range []struct {
		key  string
		part int
		want string // "" for a valid key
	}{
		{"all", 0, ""},
		{"ip", 0, ""},
		{"ip path header:X-Client-Id", 0, ""},
		{"header:X-A header:X-B cookie:X-A", 0, ""},
		{"jwt:sub jwt:Sub descriptor:sub", 0, ""},
		{"ip xff_ip user_ip", 0, ""}, // the three parts may have one address or different addresses
		{"jwt:sub ip jwt:sub", 2, "rule: key has jwt:sub twice: remove one of them"},
		{"", 0, "rule: key has no part: write what identifies a client, like ip or header:X-Client-Id; all counts all clients together"},
		{"ip path host method", 3, "rule: key has 4 parts: use at most 3"},
		{"ip path ip", 2, "rule: key has ip twice: remove one of them"},
		{"header:X-A header:x-a", 1, "rule: key has header:X-A twice: remove one of them"},
		{"ip all", 1, "rule: key has all together with other parts: remove all, because the other parts identify the client"},
		{"all ip", 0, "rule: key has all together with other parts: remove all, because the other parts identify the client"},
	} {
		err := CheckKey(parts(t, strings.Fields(c.key)...))
		if c.want == "" {
			if err != nil {
				t.Errorf("key %q gives %v", c.key, err)
			}
			continue
		}
		bad, ok := errortype.As[*KeyError](err)
		if !ok || bad.Part != c.part || bad.Error() != c.want {
			t.Errorf("key %q:\n got %v\nwant %s, part %d", c.key, err, c.want, c.part)
		}
	}
	if err := CheckKey([]Part{{}}); err == nil {
		t.Error("CheckKey accepted the zero Part")
	}
}

func FuzzParsePart(f *testing.F) {
	for _, text := range []string{"all", "ip", "header:x-client-id", "cookie:a", "jwt:sub", "jwt:https://a/b c", "ip/24", "xff_ip/24/56", "user_ip/129", "descriptor:é", "header:", "cookie:a=b", "ips", "path:{id}", "host:{a.b}", "path:{id:[0-9]+}", "query:a[]", "header:Host"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePart(text)
		if err != nil {
			checkOffset(t, text, err)
			return
		}
		if again, err := ParsePart(p.String()); err != nil || again != p {
			t.Errorf("%q gives %v, and parsing the result gives %v, %v", text, p, again, err)
		}
		if p.kind == partHeader && p.name != textproto.CanonicalMIMEHeaderKey(p.name) {
			t.Errorf("net/http cannot find header %q", p.name)
		}
		if err := CheckKey([]Part{p}); err != nil {
			t.Errorf("CheckKey refused %v alone: %v", p, err)
		}
	})
}
