package region_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/headgate/headgate/config/internal/region"
	"github.com/headgate/headgate/rule"
)

// writeDatabase replaces the download of a database.
func writeDatabase(file string) error {
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-Country", IncludeReservedNetworks: true})
	if err != nil {
		return err
	}
	_, network, err := net.ParseCIDR("192.0.2.0/24")
	if err != nil {
		return err
	}
	record := mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("NL")}}
	if err := tree.Insert(network, record); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = tree.WriteTo(f)
	return err
}

// Rules with key region need an Identity with Regions.
func Example() {
	dir, err := os.MkdirTemp("", "region")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "country.mmdb")
	if err := writeDatabase(file); err != nil {
		fmt.Println(err)
		return
	}

	db, err := region.Open(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	identity := rule.Identity{Regions: db}

	for _, ip := range []string{"192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7"} {
		code, ok := identity.Regions.Region(netip.MustParseAddr(ip))
		fmt.Printf("%s: %q %v\n", ip, code, ok)
	}
	// Output:
	// 192.0.2.7: "NL" true
	// ::ffff:192.0.2.7: "NL" true
	// 2001:db8::7: "" false
}
