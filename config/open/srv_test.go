package open

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/headgate/headgate"
	testmemcached "github.com/headgate/headgate/internal/testkit/memcached"
)

// dnsServer answers SRV queries for a name on a UDP port of loopback, with a record of each server. It gives a
// resolver that asks it.
func dnsServer(t *testing.T, name string, servers ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for buffer := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer, err := srvAnswer(buffer[:n], name, servers); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func srvAnswer(query []byte, name string, servers []string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	if m.Questions[0].Name.String() != name+"." || m.Questions[0].Type != dnsmessage.TypeSRV {
		m.RCode = dnsmessage.RCodeNameError
		return m.Pack()
	}
	for i, server := range servers {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET, TTL: 1},
			Body: &dnsmessage.SRVResource{
				Priority: uint16(i), Target: dnsmessage.MustNewName("LocalHost."), Port: netip.MustParseAddrPort(server).Port(),
			},
		})
	}
	return m.Pack()
}

// TestMemcachedOfRecords: the servers come from SRV records of a DNS server, whatever their priorities.
func TestMemcachedOfRecords(t *testing.T) {
	first, second := testmemcached.Start(t), testmemcached.Start(t)
	resolver := dnsServer(t, "_memcached._tcp.example.com", first.Addr, second.Addr)
	c := parsed(t, "version: 1\nstore: memcached+srv://_Memcached._tcp.example.com.\nstore_timeout: 10s\ndeny_cache: 0s\n"+
		"rules: [{name: a, key: [all], limits: [5/300d]}]\n")
	s, g := opened(t, c, Options{LookupSRV: resolver.LookupSRV})
	allowed := 0
	until(t, func() bool { return len(s.Memcached().Stats()) == 2 })
	for range 10 {
		if decide(t, g, "/").Verdict == headgate.Allow {
			allowed++
		}
	}
	if allowed != 5 {
		t.Errorf("%d of 10 requests are allowed, want 5", allowed)
	}
	for _, n := range s.State().Nodes {
		if !strings.HasPrefix(n.Name, "localhost:") {
			t.Errorf("got the server %s", n.Name)
		}
	}
}

// TestRecords: duplicates are one server, and a target of "." is none. Too many servers, and none, are errors.
func TestRecords(t *testing.T) {
	many := make([]*net.SRV, mostRecords+1)
	for i := range many {
		many[i] = &net.SRV{Target: "a.", Port: uint16(i + 1)}
	}
	for name, row := range map[string]struct {
		records []*net.SRV
		want    string
	}{
		"two":      {[]*net.SRV{{Target: "B.example.", Port: 2}, {Target: "a.", Port: 1}, {Target: "b.example.", Port: 2}}, "a:1 b.example:2"},
		"the most": {many[:mostRecords], "a:1 a:10"},
		"too many": {many, ""},
		"none":     {nil, ""},
		"no":       {[]*net.SRV{{Target: ".", Port: 1}, {Target: "a.", Port: 0}}, ""},
	} {
		servers, err := lookupServers("n", func(context.Context, string, string, string) (string, []*net.SRV, error) {
			return "", row.records, nil
		})(t.Context())
		if got := strings.Join(servers, " "); !strings.HasPrefix(got, row.want) || (err == nil) != (row.want != "") {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}
