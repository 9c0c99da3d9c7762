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

// country returns a record in the form of MaxMind's databases, with other members before
// and after the code.
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

// city returns a record of a city database, with more members around the country.
func city(code string) mmdbtype.Map {
	record := country(code)
	record["city"] = mmdbtype.Map{"names": mmdbtype.Map{"de": mmdbtype.String("Irgendwo"), "en": mmdbtype.String("Somewhere")}}
	record["location"] = mmdbtype.Map{"latitude": mmdbtype.Float64(52.5), "time_zone": mmdbtype.String("Europe/Berlin")}
	record["subdivisions"] = mmdbtype.Slice{mmdbtype.Map{"iso_code": mmdbtype.String("BE")}}
	return record
}

// registered returns a record that has only the registered country of the network.
func registered(code string) mmdbtype.Map {
	return mmdbtype.Map{"registered_country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}
}

// database is the content of a database file for a test.
type database struct {
	kind       string // "" means GeoLite2-Country
	ipVersion  int    // 0 means 6
	recordSize int    // 0 means 28
	networks   map[string]mmdbtype.DataType
}

// write creates the file and returns its name.
func (d database) write(tb testing.TB) string {
	tb.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType:            cmp.Or(d.kind, "GeoLite2-Country"),
		IPVersion:               d.ipVersion,
		RecordSize:              d.recordSize,
		IncludeReservedNetworks: true, // The tests use address ranges that are reserved for documentation.
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
