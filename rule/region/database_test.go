package region_test

import (
	"cmp"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// country is a record as MaxMind's databases have it, with what stands before and
// after the code.
func country(code string) mmdbtype.Map {
	return mmdbtype.Map{
		"continent": mmdbtype.Map{"code": mmdbtype.String("EU")},
		"country": mmdbtype.Map{
			"geoname_id": mmdbtype.Uint32(2750405),
			"iso_code":   mmdbtype.String(code),
			"names":      mmdbtype.Map{"en": mmdbtype.String("Somewhere")},
		},
		"registered_country": mmdbtype.Map{"iso_code": mmdbtype.String("US")},
	}
}

// city is a record of a database of cities, with more around the country.
func city(code string) mmdbtype.Map {
	record := country(code)
	record["city"] = mmdbtype.Map{"names": mmdbtype.Map{"de": mmdbtype.String("Irgendwo"), "en": mmdbtype.String("Somewhere")}}
	record["location"] = mmdbtype.Map{"latitude": mmdbtype.Float64(52.5), "time_zone": mmdbtype.String("Europe/Berlin")}
	record["subdivisions"] = mmdbtype.Slice{mmdbtype.Map{"iso_code": mmdbtype.String("BE")}}
	return record
}

// registered is a record that says only where the network is registered.
func registered(code string) mmdbtype.Map {
	return mmdbtype.Map{"registered_country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}
}

// database is what a test writes to a file.
type database struct {
	kind       string // "" is GeoLite2-Country
	ipVersion  int    // 0 is 6
	recordSize int    // 0 is 28
	networks   map[string]mmdbtype.DataType
}

// write makes the file and gives its name.
func (d database) write(tb testing.TB) string {
	tb.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType:            cmp.Or(d.kind, "GeoLite2-Country"),
		IPVersion:               d.ipVersion,
		RecordSize:              d.recordSize,
		IncludeReservedNetworks: true, // The examples are of the documentation's ranges.
		BuildEpoch:              1,
	})
	if err != nil {
		tb.Fatal(err)
	}
	for text, record := range d.networks {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			tb.Fatal(err)
		}
		if err := tree.Insert(network, record); err != nil {
			tb.Fatal(err)
		}
	}
	file := filepath.Join(tb.TempDir(), "test.mmdb")
	f, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := tree.WriteTo(f); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return file
}
