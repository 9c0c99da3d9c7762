package region_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/headgate/headgate/config/internal/region"
)

func TestOpenJudgesTheFile(t *testing.T) {
	asn := mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(64496)}
	flat := mmdbtype.Map{"country": mmdbtype.String("NL"), "country_code": mmdbtype.String("NL")}
	one := func(kind string, record mmdbtype.DataType) string {
		return database{kind: kind, networks: map[string]mmdbtype.DataType{"192.0.2.0/24": record}}.write(t)
	}
	content := func(text string) string {
		file := filepath.Join(t.TempDir(), "file.mmdb")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good, err := os.ReadFile(one("GeoLite2-Country", country("NL")))
	if err != nil {
		t.Fatal(err)
	}
	marker := bytes.LastIndex(good, []byte("MaxMind.com"))
	large := content("")
	if err := os.Truncate(large, 512<<20+1); err != nil { // the file is sparse and takes no disk space
		t.Fatal(err)
	}
	const which = "use a Country, City or Enterprise database"
	for _, c := range []struct {
		name, file string
		want       []string // empty for a valid file
	}{
		{"of countries", one("GeoLite2-Country", country("NL")), nil},
		{"of cities", one("GeoIP2-City", city("NL")), nil},
		{"of the Enterprise kind", one("GeoIP2-Enterprise", city("NL")), nil},
		{"of an own kind", one("Our-Places", registered("NL")), nil},
		{"of networks", one("GeoLite2-ASN", asn), []string{"has no countries", `"GeoLite2-ASN"`, which}},
		{"of another shape", one("ipinfo", flat), []string{"has no countries", which}},
		{"of a long name", one(strings.Repeat("long\n", 100), asn), []string{"has no countries", `long\n`, `..."`, which}},
		{"of nothing", database{}.write(t), []string{"has no countries", which}},
		{"empty", content(""), []string{"is not a MaxMind database", which}},
		{"garbage", content("<html>404</html>"), []string{"is not a MaxMind database", which}},
		{"an archive", content("\x1f\x8b\x08\x00"), []string{"is an archive: unpack it"}},
		{"a zip", content("PK\x03\x04"), []string{"is an archive: unpack it"}},
		{"a download cut short", content(string(good[:len(good)/2])), []string{"is not a MaxMind database"}},
		{"cut in its metadata", content(string(good[:len(good)-10])), []string{"is damaged", "download it again"}},
		{"without its tree", content(string(good[marker-3:])), []string{"is damaged", "download it again"}},
		{"too large", large, []string{"has 536870913 bytes", "use a smaller database"}},
		{"missing", filepath.Join(t.TempDir(), "none.mmdb"), []string{"no such file", "none.mmdb", "put the database there"}},
		{"a folder", t.TempDir(), []string{"not a regular file"}},
		{"no file", "/dev/null", []string{"not a regular file"}},
	} {
		_, err := region.Open(c.file)
		if len(c.want) == 0 && err != nil || len(c.want) > 0 && err == nil {
			t.Errorf("a file %s: got error %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "region: ") {
				t.Errorf("a file %s: the error %q does not say %q", c.name, err, want)
			}
		}
	}
}

// TestFirstCountryMayComeLate checks a database that begins with networks without a
// country.
func TestFirstCountryMayComeLate(t *testing.T) {
	networks := map[string]mmdbtype.DataType{"203.0.113.0/24": country("NL")}
	for i := range 200 {
		networks[fmt.Sprintf("10.0.%d.0/25", i)] = mmdbtype.Map{"continent": mmdbtype.Map{"code": mmdbtype.String("EU")}}
	}
	if got, ok := open(t, database{networks: networks}).Region(netip.MustParseAddr("203.0.113.1")); got != "NL" || !ok {
		t.Errorf("got %q, %v, want NL", got, ok)
	}
}

// FuzzOpen changes bytes of a valid file, or uses only those bytes. Open and Region never
// panic, and Region returns two capital letters or nothing.
func FuzzOpen(f *testing.F) {
	files := [][]byte{nil}
	for _, size := range []int{24, 28, 32} {
		for _, version := range []int{4, 6} {
			file := database{ipVersion: version, recordSize: size, networks: map[string]mmdbtype.DataType{
				"192.0.2.0/25": country("NL"), "192.0.2.128/25": registered("DE"),
			}}.write(f)
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			files = append(files, data)
			f.Add(byte(len(files)-1), uint16(0), []byte(nil))
			for at := size % 8; at < len(data); at += 8 {
				f.Add(byte(len(files)-1), uint16(at), []byte{data[at] ^ 1<<(at/8%8)})
			}
		}
	}
	f.Add(byte(0), uint16(0), []byte("\xAB\xCD\xEFMaxMind.com"))
	file := filepath.Join(f.TempDir(), "fuzz.mmdb")
	f.Fuzz(func(t *testing.T, which byte, at uint16, bytesThere []byte) {
		data := bytes.Clone(files[int(which)%len(files)])
		if len(data) > 0 {
			copy(data[int(at)%len(data):], bytesThere)
		} else {
			data = bytesThere
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := region.Open(file)
		if err != nil {
			return
		}
		for _, ip := range []string{"192.0.2.1", "192.0.2.200", "0.0.0.0", "255.255.255.255", "::", "2001:db8::1", "ffff::ffff"} {
			code, ok := db.Region(netip.MustParseAddr(ip))
			if ok != (len(code) == 2) || ok && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
				t.Errorf("region of %s: got %q, %v", ip, code, ok)
			}
		}
	})
}
