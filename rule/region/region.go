package region

import (
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"github.com/headgate/headgate/rule"
)

// maxMembers bounds how many members of a map are looked through for one name.
// MaxMind's records have up to ten; only a broken file has more.
const maxMembers = 64

// DB is a database of countries in memory. It is immutable and safe for concurrent
// use. There is nothing to close.
type DB struct {
	tree *maxminddb.Reader
	// records is the part of the file that tree points into, and values reads it.
	records []byte
	values  *mmdbdata.Decoder
	// codes are AA, AB ... ZZ in one text: every answer is a piece of it, so that
	// none is allocated.
	codes string
}

var _ rule.Regions = (*DB)(nil)

// Region gives the code of the country that ip is in, as in ISO 3166-1 ("NL"), or
// that of the country where its network is registered when the database has no
// other. IPv4-mapped addresses count as IPv4, and zones do not count.
//
// It is not ok for an address that the database does not know, for one of IPv6
// when the database has only IPv4, and where the code is not two capital letters.
func (db *DB) Region(ip netip.Addr) (code string, ok bool) {
	ip = ip.Unmap()
	if !ip.IsValid() || ip.Is6() && db.tree.Metadata.IPVersion == 4 {
		return "", false // the reader would write an error for each
	}
	found := db.tree.Lookup(ip)
	if !found.Found() {
		return "", false
	}
	return db.country(uint(found.Offset()))
}

// country finds the code in the record at offset: the first of the two that is
// there decides, right or wrong.
func (db *DB) country(offset uint) (code string, ok bool) {
	record := db.values.CursorAt(offset)
	for _, name := range [...]string{"country", "registered_country"} {
		country, found := member(record, name)
		if !found {
			continue
		}
		if value, found := member(country, "iso_code"); found {
			return db.code(value)
		}
	}
	return "", false
}

// member gives the value of a name in a map. It is not found in what is no map,
// and in what cannot be decoded.
func member(of mmdbdata.Cursor, name string) (value mmdbdata.Cursor, found bool) {
	members, err := of.Map()
	if err != nil {
		return mmdbdata.Cursor{}, false
	}
	var after mmdbdata.Cursor
	for range maxMembers {
		key, value, more := members.Next(after)
		if !more {
			break
		}
		if string(key) == name {
			return value, true
		}
		if after, err = value.Skip(); err != nil {
			break
		}
	}
	return mmdbdata.Cursor{}, false
}

// code reads a text of two capital letters. It reads the bytes themselves: the
// decoder would copy them. In the format a text of two bytes is a control byte,
// type 2 in its upper three bits and the length in the others, and the bytes
// (MaxMind DB File Format Specification 2.0, "Data Field Format").
func (db *DB) code(value mmdbdata.Cursor) (code string, ok bool) {
	const textOfTwo = 2<<5 | 2
	at, err := value.Offset() // past a pointer, if it is one
	if err != nil || at >= uint(len(db.records)) || len(db.records[at:]) < 3 || db.records[at] != textOfTwo {
		return "", false
	}
	first, second := db.records[at+1]-'A', db.records[at+2]-'A'
	if first >= letters || second >= letters {
		return "", false
	}
	i := 2 * (letters*int(first) + int(second))
	return db.codes[i : i+2], true
}

// letters is how many capitals there are.
const letters = 'Z' - 'A' + 1

// allCodes writes every pair of capitals.
func allCodes() string {
	var text []byte
	for first := range byte(letters) {
		for second := range byte(letters) {
			text = append(text, 'A'+first, 'A'+second)
		}
	}
	return string(text)
}
