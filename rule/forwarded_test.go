package rule

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
)

// Each case is a request from a peer and the client that xffIP finds. The peer is the
// trusted proxy 10.0.0.1 unless the case has another peer.
func TestXFFIP(t *testing.T) {
	id := &Identity{TrustedProxies: networks("10.0.0.0/8", "2001:db8:1::/48"), TrustUnix: true}
	// The peer is the expected client when the header is not trusted.
	const peer = "10.0.0.1"
	hops := func(n int) string { return strings.Repeat("10.0.0.2, ", n) }
	for _, c := range []struct {
		why   string
		ip    string
		lines []string
		want  string
	}{
		{"no header", peer, nil, peer},
		{"one entry", peer, []string{"192.0.2.7"}, "192.0.2.7"},
		{"trusted proxies are skipped", peer, []string{"192.0.2.7, 10.0.0.3, 10.0.0.2"}, "192.0.2.7"},
		{"only trusted proxies", peer, []string{"10.0.0.3, 10.0.0.2"}, peer},

		{"a forged entry left of the client", peer, []string{"127.0.0.1, 192.0.2.7"}, "192.0.2.7"},
		{"a forged proxy left of the client", peer, []string{"198.51.100.1, 10.0.0.9, 192.0.2.7"}, "192.0.2.7"},
		{"forged garbage left of the client", peer, []string{"<script>, ,,%00, 192.0.2.7"}, "192.0.2.7"},
		{"a forged line before the client", peer, []string{"198.51.100.1", "192.0.2.7"}, "192.0.2.7"},
		{"the header of an untrusted peer is ignored", "192.0.2.9", []string{"192.0.2.7"}, "192.0.2.9"},
		{"the header of an untrusted peer that names a proxy", "192.0.2.9", []string{"192.0.2.7, 10.0.0.2"}, "192.0.2.9"},

		{"lines are one list", peer, []string{"192.0.2.6, 192.0.2.7", "10.0.0.3", "10.0.0.2, 10.0.0.4"}, "192.0.2.7"},
		{"an empty line is an empty entry", peer, []string{"192.0.2.7", ""}, peer},
		{"an empty entry ends the search", peer, []string{"192.0.2.7, , 10.0.0.2"}, peer},
		{"a comma at the end", peer, []string{"192.0.2.7,"}, peer},
		{"a comma at the start, left of the client", peer, []string{",192.0.2.7"}, "192.0.2.7"},
		{"a name ends the search", peer, []string{"192.0.2.7, unknown, 10.0.0.2"}, peer},

		{"a port", peer, []string{"192.0.2.7:61000"}, "192.0.2.7"},
		{"IPv6", peer, []string{"2001:db8::7"}, "2001:db8::7"},
		{"IPv6 in brackets", peer, []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"IPv6 with a port", peer, []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"a trusted proxy with a port", peer, []string{"192.0.2.7, [2001:db8:1::1]:443 , 10.0.0.2:80"}, "192.0.2.7"},
		{"blanks around", peer, []string{" \t192.0.2.7\t ,\t10.0.0.2"}, "192.0.2.7"},
		{"another blank", peer, []string{"192.0.2.7\u00a0"}, peer},
		{"no zones", peer, []string{"fe80::1%eth0"}, peer},
		{"quotes are invalid here", peer, []string{`"192.0.2.7"`}, peer},

		{"IPv4 in IPv6 is IPv4", peer, []string{"::ffff:192.0.2.7"}, "192.0.2.7"},
		{"a proxy in IPv6 is trusted", peer, []string{"192.0.2.7, ::ffff:10.0.0.2, ::ffff:a00:3"}, "192.0.2.7"},
		{"a peer in IPv6 is trusted", "::ffff:10.0.0.1", []string{"192.0.2.7, [::ffff:10.0.0.2]:80"}, "192.0.2.7"},
		{"a peer in IPv6 stays unchanged", "::ffff:10.0.0.1", nil, "::ffff:10.0.0.1"},

		{"behind a unix socket", "", []string{"192.0.2.7, 10.0.0.2"}, "192.0.2.7"},
		{"a unix socket without header", "", nil, ""},

		{"the longest chain", peer, []string{"198.51.100.1, 192.0.2.7, " + hops(62) + "10.0.0.2"}, "192.0.2.7"},
		{"a longer chain", peer, []string{"198.51.100.1, 192.0.2.7, " + hops(63) + "10.0.0.2"}, peer},
		{"a longer chain in lines", peer, []string{"192.0.2.7", hops(31) + "10.0.0.2", hops(31) + "10.0.0.2"}, peer},
		{"10,000 entries", peer, []string{"192.0.2.7, " + hops(10_000) + "10.0.0.2"}, peer},
		{"10,000 lines", peer, append([]string{"192.0.2.7"}, slices.Repeat([]string{"10.0.0.2"}, 10_000)...), peer},
		{"a client after 10,000 forged entries", peer, []string{strings.Repeat("198.51.100.1,", 10_000) + "192.0.2.7, 10.0.0.2"}, "192.0.2.7"},
		{"an entry of a megabyte", peer, []string{"192.0.2.7, " + strings.Repeat("1", 1<<20)}, peer},
	} {
		req := &headgate.Request{Header: xff(c.lines...), Path: "/"}
		var want netip.Addr
		if c.ip != "" {
			req.IP = addr(c.ip)
		}
		if c.want != "" {
			want = addr(c.want)
		}
		if id.Resolve(req, NeedXFFIP); req.XFFIP != want {
			t.Errorf("%s: got client %v, want %q", c.why, req.XFFIP, c.want)
		}
	}
}

// A front may know only the first line of a header.
func TestXFFIPOfOneLine(t *testing.T) {
	id := &Identity{TrustedProxies: networks("192.0.2.1/32")}
	req := get("/")
	req.Header = sent{"X-Forwarded-For": "198.51.100.1, 198.51.100.2"}
	if id.Resolve(req, NeedXFFIP); req.XFFIP != addr("198.51.100.2") {
		t.Errorf("the sender is %v", req.XFFIP)
	}
	req = get("/")
	if id.Resolve(req, NeedXFFIP); req.XFFIP != req.IP {
		t.Errorf("the sender is %v", req.XFFIP)
	}
}

// Identity reads at most maxForwarded entries. Identity finds a client behind fewer trusted
// proxies, and not behind more.
func TestLongChainsAreNotWalked(t *testing.T) {
	id := &Identity{TrustedProxies: networks("10.0.0.0/8")}
	for _, proxies := range []int{0, 1, maxForwarded - 1, maxForwarded, 2 * maxForwarded, 10_000} {
		lines := append([]string{"192.0.2.7"}, slices.Repeat([]string{"10.0.0.2"}, proxies)...)
		for _, chain := range [][]string{lines, {strings.Join(lines, ",")}} {
			if _, found := id.firstUntrusted(chain); found != (proxies < maxForwarded) {
				t.Errorf("client behind %d proxies: found %v", proxies, found)
			}
		}
	}
}

func TestUserIP(t *testing.T) {
	id := &Identity{TrustedProxies: networks("10.0.0.0/8"), TrustUnix: true, UserIPHeaders: []string{"X-User", "X-Real-Ip"}}
	const peer = "10.0.0.1"
	for _, c := range []struct {
		why    string
		ip     string
		header headgate.Values
		want   string
	}{
		{"no header at all", peer, nil, peer},
		{"none of the headers", peer, xff("192.0.2.7"), peer},
		{"the first", peer, fields{"X-User": {"192.0.2.7"}, "X-Real-Ip": {"192.0.2.8"}}, "192.0.2.7"},
		{"the second", peer, fields{"X-Real-Ip": {"192.0.2.8"}}, "192.0.2.8"},
		{"the first header counts, valid or not", peer, fields{"X-User": {"garbage"}, "X-Real-Ip": {"192.0.2.8"}}, peer},
		{"the first header counts if it is empty", peer, fields{"X-User": {""}, "X-Real-Ip": {"192.0.2.8"}}, peer},
		{"two lines", peer, fields{"X-User": {"192.0.2.7", "192.0.2.8"}}, peer},
		{"the same header twice", peer, fields{"X-User": {"192.0.2.7", "192.0.2.7"}}, peer},
		{"two addresses", peer, fields{"X-User": {"192.0.2.7, 192.0.2.8"}}, peer},
		{"an untrusted peer", "192.0.2.9", fields{"X-User": {"192.0.2.7"}}, "192.0.2.9"},
		{"a user with the address of a proxy", peer, fields{"X-User": {"10.0.0.7"}}, "10.0.0.7"},
		{"a port", peer, fields{"X-User": {" [2001:db8::7]:443 "}}, "2001:db8::7"},
		{"IPv4 in IPv6 is IPv4", peer, fields{"X-User": {"::ffff:192.0.2.7"}}, "192.0.2.7"},
		{"behind a unix socket", "", fields{"X-User": {"192.0.2.7"}}, "192.0.2.7"},
		{"a front that knows one line", peer, sent{"X-Real-Ip": "192.0.2.8"}, "192.0.2.8"},
	} {
		req := &headgate.Request{Header: c.header}
		if c.ip != "" {
			req.IP = addr(c.ip)
		}
		if id.Resolve(req, NeedUserIP); req.UserIP != addr(c.want) {
			t.Errorf("%s: got user %v, want %s", c.why, req.UserIP, c.want)
		}
	}
}

// withPort matches IPv6 in brackets or IPv4, with or without a port.
var withPort = regexp.MustCompile(`^(?:\[([0-9a-fA-F:.]*:[0-9a-fA-F:.]*)\]|([0-9.]+))(?::([0-9]{1,5}))?$`)

// simpleSender is the twin of parseSender.
func simpleSender(text string) (netip.Addr, bool) {
	text = strings.Trim(text, " \t")
	form := withPort.FindStringSubmatch(text)
	if form != nil {
		text = form[1] + form[2]
		if port, err := strconv.Atoi(form[3]); form[3] != "" && (err != nil || port > 65535) {
			return netip.Addr{}, false
		}
	}
	ip, err := netip.ParseAddr(text)
	return ip.Unmap(), err == nil && ip.Zone() == ""
}

// simpleXFFIP is the twin of xffIP.
func simpleXFFIP(id *Identity, ip netip.Addr, lines []string) netip.Addr {
	if !id.Trusts(ip) {
		return ip
	}
	entries := strings.Split(strings.Join(lines, ","), ",")
	slices.Reverse(entries)
	for _, entry := range entries[:min(len(entries), 64)] {
		sender, ok := simpleSender(entry)
		if !ok {
			return ip
		}
		if !id.Trusts(sender) {
			return sender
		}
	}
	return ip
}

// simpleUserIP is the twin of userIP.
func simpleUserIP(id *Identity, ip netip.Addr, headers fields) netip.Addr {
	for _, name := range id.UserIPHeaders {
		if len(headers[name]) > 0 {
			sender, ok := simpleSender(strings.Join(headers[name], ","))
			if ok && id.Trusts(ip) {
				return sender
			}
			return ip
		}
	}
	return ip
}

// compareSenders resolves a request and compares the result with the twins.
func compareSenders(t interface {
	Helper()
	Errorf(format string, args ...any)
}, id *Identity, ip netip.Addr, headers fields,
) {
	t.Helper()
	req := &headgate.Request{IP: ip, Header: headers}
	id.Resolve(req, NeedXFFIP|NeedUserIP)
	if want := simpleXFFIP(id, ip, headers["X-Forwarded-For"]); req.XFFIP != want {
		t.Errorf("from %v with %q: got client %v, want %v of the twin", ip, headers, req.XFFIP, want)
	}
	if want := simpleUserIP(id, ip, headers); req.UserIP != want {
		t.Errorf("from %v with %q: got user %v, want %v of the twin", ip, headers, req.UserIP, want)
	}
}

// linesOf splits a text into lines. An empty text has no lines.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func FuzzResolve(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1}, "192.0.2.7, 10.0.0.2", "192.0.2.8", "", true)
	f.Add([]byte{10, 0, 0, 1}, "1.2.3.4:80,[2001:db8::1]:443\n\t::ffff:10.0.0.9 ", "", "[::1]", false)
	f.Add([]byte{}, "10.0.0.2,,1.2.3.4", "a\nb", "1.2.3.4", true)
	f.Add([]byte{192, 0, 2, 1}, "1.2.3.4", "1.2.3.4", "1.2.3.4", true)
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x01"), strings.Repeat("10.0.0.1,", 70), "::", "1:2", true)
	f.Fuzz(func(t *testing.T, peer []byte, xff, first, second string, unix bool) {
		id := &Identity{
			TrustedProxies: networks("10.0.0.0/8", "2001:db8::/32", "::1/128"), TrustUnix: unix,
			UserIPHeaders: []string{"X-First", "X-Second"},
		}
		ip, _ := netip.AddrFromSlice(peer)
		compareSenders(t, id, ip, fields{"X-Forwarded-For": linesOf(xff), "X-First": linesOf(first), "X-Second": linesOf(second)})
	})
}

// A fuzzer rarely produces chains of valid addresses, so this test draws them.
func TestResolveIsTheTwin(t *testing.T) {
	entry := property.SampledFrom([]string{
		"10.0.0.1", "10.0.0.2", "10.255.255.255", "10.0.0.1:80", "::ffff:10.0.0.1", "[::ffff:a00:1]:1", "2001:db8::1", " [2001:db8::1] ",
		"192.0.2.7", "192.0.2.7:80", "::ffff:192.0.2.7", "2001:db9::1", "[2001:db9::1]:65535", "\t192.0.2.8 ",
		"", " ", "unknown", "1.2.3", "192.0.2.7:", "[2001:db9::1", "fe80::1%eth0", "192.0.2.7:65536", "[192.0.2.7]",
	})
	line := property.Custom(func(t *property.T) string {
		return strings.Join(property.SliceOfN(entry, 1, 5).Draw(t, "entries"), ",")
	})
	trusted := property.Custom(func(t *property.T) string {
		return strings.Repeat("10.0.0.3,", property.IntRange(0, 70).Draw(t, "proxies")) + "10.0.0.4"
	})
	property.Check(t, func(t *property.T) {
		id := &Identity{
			TrustedProxies: networks("10.0.0.0/8", "2001:db8::/32"), TrustUnix: property.Bool().Draw(t, "unix"),
			UserIPHeaders: []string{"X-First", "X-Second"},
		}
		var ip netip.Addr
		if peer := property.SampledFrom([]string{"10.0.0.1", "", "192.0.2.1", "::ffff:10.0.0.1", "2001:db8::9"}).Draw(t, "peer"); peer != "" {
			ip = addr(peer)
		}
		compareSenders(t, id, ip, fields{
			"X-Forwarded-For": property.SliceOfN(property.OneOf(line, trusted), 0, 4).Draw(t, "X-Forwarded-For"),
			"X-First":         property.SliceOfN(entry, 0, 2).Draw(t, "X-First"),
			"X-Second":        property.SliceOfN(entry, 0, 2).Draw(t, "X-Second"),
		})
	})
}
