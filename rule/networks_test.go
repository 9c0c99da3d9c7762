package rule

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/headgate/headgate"
)

// drawNetwork returns a random network of a few bits, so that networks often contain each other.
func drawNetwork(draw *rand.Rand) netip.Prefix {
	var ip netip.Addr
	bits := 1 + draw.IntN(32)
	if draw.IntN(3) == 0 {
		ip, bits = netip.AddrFrom16([16]byte{0x20, 1, byte(draw.IntN(2)), 3: byte(draw.IntN(4)), 7: byte(draw.IntN(3))}), 1+draw.IntN(64)
	} else {
		ip = netip.AddrFrom4([4]byte{10, byte(draw.IntN(2)), byte(draw.IntN(3)), byte(draw.IntN(8))})
	}
	p, _ := ip.Prefix(bits)
	return p
}

// TestNetworksFindTheLongest compares Find and Next with a comparison of all networks, for random lists.
func TestNetworksFindTheLongest(t *testing.T) {
	part := parts(t, "ip")[0]
	for seed := range uint64(400) {
		draw := rand.New(rand.NewPCG(seed, 2))
		var entries []Override
		var all []netip.Prefix
		seen := map[netip.Prefix]bool{}
		for range 1 + draw.IntN(40) {
			if p := drawNetwork(draw); !seen[p] {
				seen[p] = true
				all, entries = append(all, p), append(entries, Override{Value: p.String(), Many: true})
			}
		}
		o, err := NewManyOverrides(part, entries)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			ip := drawNetwork(draw).Addr()
			req := &headgate.Request{IP: ip}
			got, ok := o.Find(req)
			for longest := 64; ; {
				want := -1
				for i, p := range all {
					if p.Contains(ip) && p.Bits() <= longest && (want < 0 || p.Bits() > all[want].Bits()) {
						want = i
					}
				}
				if ok != (want >= 0) || ok && got != want {
					t.Fatalf("seed %d: %s is in %d, %t, want %d of %v", seed, ip, got, ok, want, all)
				}
				if want < 0 {
					break
				}
				longest = all[want].Bits() - 1
				got, ok = o.Next(req, got)
			}
		}
	}
}

// TestManyOverrides: an exact value wins over patterns, and of these the first.
func TestManyOverrides(t *testing.T) {
	for _, c := range []struct {
		part   string
		values []string
		finds  map[string][]int // by the value, the entries in the order in which they apply
	}{
		{"header:X-Id", []string{"gold-*", "gold-1", "g*", "=silver*", "bronze"}, map[string][]int{
			"gold-1": {1, 0, 2}, "gold-2": {0, 2}, "g": {2}, "silver*": {3}, "silver1": {}, "bronze": {4},
		}},
		{"method", []string{"GET", "=BREW"}, map[string][]int{"GET": {0}, "BREW": {1}, "PUT": {}}},
		{"path", []string{"/a/*", "/a/b"}, map[string][]int{"/a/b": {1, 0}, "/a/c": {0}, "/b": {}}},
		{"ip/24", []string{"10.0.0.0/8", "10.1.1.0/24", "10.1.2.7", "2001:db8::/32"}, map[string][]int{
			"10.1.1.9": {1, 0}, "10.1.2.9": {2, 0}, "10.9.9.9": {0}, "11.0.0.1": {}, "2001:db8::1": {3},
		}},
	} {
		var entries []Override
		for _, v := range c.values {
			entries = append(entries, Override{v, true})
		}
		o, err := NewManyOverrides(parts(t, c.part)[0], entries)
		if err != nil {
			t.Errorf("%s: %v", c.part, err)
			continue
		}
		for value, want := range c.finds {
			req := carrying(o.part, value)
			req.Header = sent{"X-Id": value}
			got := []int{}
			for i, ok := o.Find(req); ok; i, ok = o.Next(req, i) {
				got = append(got, i)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s %q: %v apply, want %v", c.part, value, got, want)
			}
			if n := testing.AllocsPerRun(10, func() {
				if i, ok := o.Find(req); ok {
					o.Next(req, i)
				}
			}); n != 0 {
				t.Errorf("%s %q: %v allocations", c.part, value, n)
			}
		}
	}
}

// TestManyOverridesTeach: what is at fault in a list with networks and patterns.
func TestManyOverridesTeach(t *testing.T) {
	for _, c := range []struct{ part, first, value, want string }{
		{"ip", "", "10.1.0.0/8", `"10.1.0.0/8" has an address within its network: write 10.0.0.0/8`},
		{"ip", "10.0.0.0/8", "10.0.0.0/8", `"10.0.0.0/8" duplicates "10.0.0.0/8": remove one of them`},
		{"ip", "", "::ffff:10.0.0.0/104", `"::ffff:10.0.0.0/104" covers more than one client: IPv4 addresses count one by one: write single addresses`},
		{"ip/24", "", "192.0.2.0/25", `"192.0.2.0/25" is not one client: IPv4 addresses count by their /24: write 192.0.2.0/24`},
		{"header:A", "a*", "a*", `"a*" duplicates "a*": remove one of them`},
		{"header:A", "a", "=a", `"=a" duplicates "a": remove one of them`},
		{"header:A", "", "", `is empty: write the value that requests send`},
		{"path", "", "!/a", `"!/a" looks like a pattern: a text cannot leave another one out: the rule's limits apply to all other values: write "/a" with limits of its own`},
		{"method", "", "GET|POST", `"GET|POST" is not one method: write "re:GET|POST"`},
		{"method", "", "", `is empty: write a method like GET`},
		{"host", "", "*", `"*" has no name after the *: write a host like api.example.com`},
	} {
		entries := []Override{{c.first, true}, {c.value, true}}
		if c.first == "" {
			entries = entries[1:]
		}
		if _, err := NewManyOverrides(parts(t, c.part)[0], entries); err == nil || err.Error() != fmt.Sprintf("rule: overrides[%d] %s", len(entries)-1, c.want) {
			t.Errorf("%s %q:\n got %v\nwant %s", c.part, c.value, err, c.want)
		}
	}
	many := make([]Override, MaxOverridePatterns+1)
	for i := range many {
		many[i] = Override{fmt.Sprint("a", i, "*"), true}
	}
	if _, err := NewManyOverrides(parts(t, "header:A")[0], many[1:]); err != nil {
		t.Error(err)
	}
	if _, err := NewManyOverrides(parts(t, "header:A")[0], many); err == nil {
		t.Error("there is no fault of a pattern too many")
	}
}

// BenchmarkOverridesByNetwork looks up addresses among networks of several lengths.
func BenchmarkOverridesByNetwork(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		draw := rand.New(rand.NewPCG(1, 3))
		numbers := map[netip.Prefix]bool{}
		for len(numbers) < n {
			ip := netip.AddrFrom4([4]byte{byte(draw.IntN(224)), byte(draw.IntN(256)), byte(draw.IntN(256)), 0})
			p, _ := ip.Prefix([]int{12, 16, 20, 22, 24}[len(numbers)%5])
			numbers[p] = true
		}
		var entries []Override
		var requests []*headgate.Request
		for p := range numbers {
			entries = append(entries, Override{p.String(), true})
			requests = append(requests, &headgate.Request{IP: p.Addr().Next()}, &headgate.Request{IP: netip.AddrFrom4([4]byte{byte(draw.IntN(224)), 1, 2, 3})})
		}
		o, err := NewManyOverrides(Part{kind: partIP}, entries)
		if err != nil {
			b.Fatal(err)
		}
		requests = requests[:20]
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				o.Find(requests[i%len(requests)])
			}
		})
	}
}
