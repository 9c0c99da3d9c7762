package rule

import (
	"net/netip"
	"testing"

	"github.com/headgate/headgate"
)

// manyLines is a header with several lines of a name.
type manyLines map[string][]string

func (l manyLines) Lookup(name string) (string, bool) {
	if len(l[name]) == 0 {
		return "", false
	}
	return l[name][0], true
}

func (l manyLines) Lines(name string) []string { return l[name] }

// TestClientIP: a header names the client only if a trusted peer sends it, and no header gives a client the address of a proxy.
func TestClientIP(t *testing.T) {
	trusting := &Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, TrustUnix: true}
	naming := &Identity{TrustedProxies: trusting.TrustedProxies, UserIPHeaders: []string{"X-User-Ip", "X-Real-Ip"}}
	const none = "invalid IP"
	for _, c := range []struct {
		why    string
		id     *Identity
		peer   string
		header manyLines
		want   string
	}{
		{"no identity", nil, "10.1.1.1", manyLines{"X-Forwarded-For": {"192.0.2.7"}}, "10.1.1.1"},
		{"a peer that is not trusted", trusting, "203.0.113.7", manyLines{"X-Forwarded-For": {"10.1.1.1"}}, "203.0.113.7"},
		{"the same with a user-IP header", naming, "203.0.113.7", manyLines{"X-User-Ip": {"10.1.1.1"}}, "203.0.113.7"},
		{"a proxy alone", trusting, "10.1.1.1", nil, "10.1.1.1"},
		{"the client before the proxies", trusting, "10.1.1.1", manyLines{"X-Forwarded-For": {"10.9.9.9, 203.0.113.7, 10.2.2.2"}}, "203.0.113.7"},
		{"over two lines", trusting, "10.1.1.1", manyLines{"X-Forwarded-For": {"10.9.9.9", "203.0.113.7"}}, "203.0.113.7"},
		{"proxies alone", trusting, "10.1.1.1", manyLines{"X-Forwarded-For": {"10.9.9.9"}}, "10.1.1.1"},
		{"no address", trusting, "10.1.1.1", manyLines{"X-Forwarded-For": {"unknown"}}, none},
		{"an empty entry", trusting, "10.1.1.1", manyLines{"X-Forwarded-For": {"203.0.113.7,"}}, none},
		{"an empty line", trusting, "10.1.1.1", manyLines{"X-Forwarded-For": {""}}, none},
		{"a socket without a header", trusting, "", nil, none},
		{"a socket with one", trusting, "", manyLines{"X-Forwarded-For": {"203.0.113.7"}}, "203.0.113.7"},
		{"a user-IP header before the other", naming, "10.1.1.1", manyLines{"X-Real-Ip": {"192.0.2.7"}, "X-Forwarded-For": {"203.0.113.7"}}, "192.0.2.7"},
		{"without it the other counts", naming, "10.1.1.1", manyLines{"X-Forwarded-For": {"203.0.113.7"}}, "203.0.113.7"},
		{"two lines of it", naming, "10.1.1.1", manyLines{"X-User-Ip": {"10.1.1.1", "203.0.113.7"}}, none},
		{"no address in it", naming, "10.1.1.1", manyLines{"X-User-Ip": {"x"}, "X-Forwarded-For": {"203.0.113.7"}}, none},
	} {
		req := headgate.Request{Header: c.header}
		if c.peer != "" {
			req.IP = netip.MustParseAddr(c.peer)
		}
		c.id.Resolve(&req, NeedClientIP)
		if got := req.ClientIP.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.why, got, c.want)
		}
	}
}
