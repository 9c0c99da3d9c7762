package region

import (
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"github.com/headgate/headgate/rule"
)

// maxMembers limits the members of a map that are searched for a name. MaxMind's records
// have up to ten members. Only a damaged file has more.
const maxMembers = 64

// DB is a country database in memory. DB is immutable and safe for concurrent use. It
// needs no Close.
type DB struct {
	tree *maxminddb.Reader
	// records is the part of the file that tree refers to. values decodes it.
	records []byte
	values  *mmdbdata.Decoder
	// codes has AA, AB ... ZZ in one text. Every result is a part of it, so that Region
	// allocates nothing.
	codes string
}

var _ rule.Regions = (*DB)(nil)

// Region returns the ISO 3166-1 code ("NL") of the country of ip. If the database has
// only the country where the network is registered, Region returns its code.
// IPv4-mapped addresses count as IPv4, and zones are ignored.
//
// Region reports false for an unknown address, for IPv6 if the database has only IPv4,
// and for a code that is not two capital letters.
func (db *DB) Region(ip netip.Addr) (code string, ok bool) {
	ip = ip.Unmap()
	if !ip.IsValid() || ip.Is6() && db.tree.Metadata.IPVersion == 4 {
		return "", false // the reader would allocate an error for each IPv6 address
	}
	found := db.tree.Lookup(ip)
	if !found.Found() {
		return "", false
	}
	return db.country(uint(found.Offset()))
}

// country returns the code in the record at offset. The first of the two members decides,
// even if its code is invalid.
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

// member returns the value of a name in a map. member reports false for a value that is not a
// map or cannot be decoded.
func member(record mmdbdata.Cursor, name string) (value mmdbdata.Cursor, found bool) {
	members, err := record.Map()
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

// code reads a text of two capital letters. code reads the bytes directly, because the
// decoder would copy them. In the format, a text of two bytes has a control byte in
// front: type 2 in its upper three bits, and the length in the others (MaxMind DB File
// Format Specification 2.0, "Data Field Format").
func (db *DB) code(value mmdbdata.Cursor) (code string, ok bool) {
	const textOfTwo = 2<<5 | 2
	at, err := value.Offset() // the offset after a pointer, if the value is a pointer
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

// letters is the number of capital letters.
const letters = 'Z' - 'A' + 1

// allCodes returns every pair of capital letters.
func allCodes() string {
	var text []byte
	for first := range byte(letters) {
		for second := range byte(letters) {
			text = append(text, 'A'+first, 'A'+second)
		}
	}
	return string(text)
}
