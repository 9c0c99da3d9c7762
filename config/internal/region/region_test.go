package region_test

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/headgate/headgate/config/internal/region"
	"github.com/headgate/headgate/internal/testkit/race"
)

func open(tb testing.TB, d database) *region.DB {
	tb.Helper()
	db, err := region.Open(d.write(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

func TestRegion(t *testing.T) {
	iso := func(value mmdbtype.DataType) mmdbtype.Map {
		return mmdbtype.Map{"country": mmdbtype.Map{"iso_code": value}}
	}
	crowded := mmdbtype.Map{}
	for i := range 100 {
		crowded[mmdbtype.String(fmt.Sprintf("a%d", i))] = mmdbtype.Bool(true)
	}
	crowded["country"] = mmdbtype.Map{"iso_code": mmdbtype.String("NL")}
	networks := map[string]mmdbtype.DataType{
		"192.0.2.0/25":      country("NL"),
		"192.0.2.128/25":    city("DE"),
		"198.51.100.0/25":   registered("FR"),
		"198.51.100.128/25": mmdbtype.Map{"country": mmdbtype.Map{"names": mmdbtype.Map{}}, "registered_country": mmdbtype.Map{"iso_code": mmdbtype.String("BE")}},
		"2001:db8:1::/48":   country("AA"),
		"2001:db8:2::/48":   country("ZZ"),
		// MaxMind's databases do not have the following records.
		"203.0.113.1/32":  country("nl"),
		"203.0.113.2/32":  country("NLD"),
		"203.0.113.3/32":  country("N"),
		"203.0.113.4/32":  country(""),
		"203.0.113.5/32":  country("N@"),
		"203.0.113.6/32":  country("[L"),
		"203.0.113.7/32":  country("É"), // two bytes
		"203.0.113.8/32":  iso(mmdbtype.Bytes("NL")),
		"203.0.113.9/32":  iso(mmdbtype.Uint16(0x4e4c)),
		"203.0.113.10/32": mmdbtype.Map{"country": mmdbtype.String("NL")},
		"203.0.113.11/32": mmdbtype.String("NL"),
		"203.0.113.12/32": mmdbtype.Map{},
		"203.0.113.13/32": mmdbtype.Slice{mmdbtype.String("NL")},
		"203.0.113.14/32": crowded,
	}
	cases := []struct{ ip, want string }{
		{"192.0.2.1", "NL"},
		{"192.0.2.127", "NL"},
		{"192.0.2.128", "DE"},
		{"::ffff:192.0.2.128", "DE"},
		{"198.51.100.1", "FR"},
		{"198.51.100.129", "BE"},
		{"2001:db8:1::7", "AA"},
		{"2001:db8:2::7%eth0", "ZZ"},
		{"2001:db8:3::7", ""},
		{"10.0.0.1", ""},
		{"::1", ""},
		{"203.0.113.0", ""},
	}
	for i := range 14 {
		cases = append(cases, struct{ ip, want string }{fmt.Sprintf("203.0.113.%d", i+1), ""})
	}
	for _, size := range []int{24, 28, 32} {
		db := open(t, database{networks: networks, recordSize: size})
		for _, c := range cases {
			got, ok := db.Region(netip.MustParseAddr(c.ip))
			if got != c.want || ok != (c.want != "") {
				t.Errorf("%d bits: region of %s: got %q, %v, want %q", size, c.ip, got, ok, c.want)
			}
		}
		if got, ok := db.Region(netip.Addr{}); ok {
			t.Errorf("an invalid address: got region %q", got)
		}
	}
}

// TestEveryCode checks that each of the 676 pairs of letters is returned unchanged.
func TestEveryCode(t *testing.T) {
	networks, want := map[string]mmdbtype.DataType{}, map[string]string{}
	for i := range 26 * 26 {
		code := string([]byte{'A' + byte(i/26), 'A' + byte(i%26)})
		ip := fmt.Sprintf("192.0.%d.%d", i/256, i%256)
		networks[ip+"/32"], want[ip] = country(code), code
	}
	db := open(t, database{networks: networks})
	for ip, code := range want {
		if got, ok := db.Region(netip.MustParseAddr(ip)); got != code || !ok {
			t.Errorf("region of %s: got %q, %v, want %q", ip, got, ok, code)
		}
	}
}

func TestIPv4Only(t *testing.T) {
	db := open(t, database{ipVersion: 4, networks: map[string]mmdbtype.DataType{"192.0.2.0/24": country("NL")}})
	for ip, want := range map[string]string{"192.0.2.1": "NL", "::ffff:192.0.2.1": "NL", "198.51.100.1": "", "2001:db8::1": "", "::c000:201": ""} {
		if got, ok := db.Region(netip.MustParseAddr(ip)); got != want || ok != (want != "") {
			t.Errorf("region of %s: got %q, %v, want %q", ip, got, ok, want)
		}
	}
}

// TestFileCutInPlace checks that an open database survives the truncation of its file.
func TestFileCutInPlace(t *testing.T) {
	file := database{networks: map[string]mmdbtype.DataType{"192.0.2.0/24": country("NL")}}.write(t)
	db, err := region.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if got, ok := db.Region(netip.MustParseAddr("192.0.2.1")); got != "NL" || !ok {
		t.Errorf("after the file was truncated: got %q, %v, want NL", got, ok)
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	db := open(t, database{networks: map[string]mmdbtype.DataType{"192.0.2.0/24": city("NL"), "2001:db8::/32": registered("DE")}})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				four, _ := db.Region(netip.MustParseAddr("192.0.2.1"))
				six, _ := db.Region(netip.MustParseAddr("2001:db8::1"))
				if four != "NL" || six != "DE" {
					t.Errorf("got %q and %q, want NL and DE", four, six)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestRegionAllocatesNothing(t *testing.T) {
	if race.On {
		return
	}
	networks := map[string]mmdbtype.DataType{"192.0.2.0/25": city("NL"), "192.0.2.128/25": mmdbtype.String("NL"), "2001:db8::/32": registered("DE")}
	six := open(t, database{networks: networks})
	four := open(t, database{ipVersion: 4, networks: map[string]mmdbtype.DataType{"192.0.2.0/24": city("NL")}})
	for _, c := range []struct {
		db *region.DB
		ip string
	}{{six, "192.0.2.1"}, {six, "2001:db8::1"}, {six, "::ffff:192.0.2.1"}, {six, "10.0.0.1"}, {four, "192.0.2.1"}, {four, "2001:db8::1"}} {
		ip := netip.MustParseAddr(c.ip)
		if n := testing.AllocsPerRun(100, func() { c.db.Region(ip) }); n != 0 {
			t.Errorf("a lookup of %s has %v allocations, want 0", c.ip, n)
		}
	}
}

func BenchmarkRegion(b *testing.B) {
	networks := map[string]mmdbtype.DataType{}
	for i := range 256 {
		networks[fmt.Sprintf("%d.%d.0.0/24", i, 255-i)] = city(string([]byte{'A' + byte(i/26), 'A' + byte(i%26)}))
	}
	db := open(b, database{networks: networks})
	ip := netip.MustParseAddr("77.178.0.7")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := db.Region(ip); !ok {
			b.Fatal("the address has no region")
		}
	}
}
