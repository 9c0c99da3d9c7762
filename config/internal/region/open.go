package region

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oschwald/maxminddb-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"github.com/headgate/headgate/internal/readfile"
)

const (
	// maxBytes limits the size of a file, which is kept in memory. A country database takes
	// a few megabytes, and a city database takes tens or hundreds of megabytes.
	maxBytes = 512 << 20
	// maxNetworks limits the search for the first country to about a tenth of a second. A
	// country database has a country among its first networks.
	maxNetworks = 1 << 18
	// separatorBytes is the distance between the tree and the records. marker precedes the
	// metadata (MaxMind DB File Format Specification 2.0).
	separatorBytes = 16
	marker         = "\xAB\xCD\xEFMaxMind.com"
)

// which is the remedy for a wrong file.
const which = "use a Country, City or Enterprise database, like GeoLite2-Country.mmdb"

// Open reads a database of at most 512 MiB into memory. The error names the fault of the
// file and the remedy.
func Open(file string) (*DB, error) {
	data, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("region: %w", err)
	}
	db, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("region: %s %w", file, err)
	}
	return db, nil
}

// read reads a regular file. read reads the size once. A file that is written at the same
// time gives an error, or is checked like any other file.
func read(file string) ([]byte, error) {
	var one readfile.Pending[[]byte]
	data, err := one.Do(file, func() ([]byte, error) { return readNow(file) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: put the database there, or correct the path", err)
	case errors.Is(err, readfile.ErrNotRegular):
		return nil, fmt.Errorf("%w: write the path of the .mmdb file", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: make the file readable for this process", err)
	}
	return data, err
}

func readNow(file string) ([]byte, error) {
	f, err := readfile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // because nothing was written
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("%s has %d bytes, and the maximum is %d: use a smaller database, like GeoLite2-Country.mmdb",
			file, info.Size(), maxBytes)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("reading %s: %w: try again; write new databases elsewhere and rename them into place", file, err)
	}
	return data, nil
}

// parse returns a DB for the content of a file and keeps data. The caller puts the file's
// name in front of its errors.
func parse(data []byte) (*DB, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")), bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return nil, errors.New("is an archive: unpack it, and use the .mmdb file in it")
	case !bytes.Contains(data, []byte(marker)):
		return nil, fmt.Errorf("is not a MaxMind database: %s", which)
	}
	tree, err := maxminddb.OpenBytes(data, maxminddb.DisableStringCache())
	if err != nil {
		return nil, fmt.Errorf("is damaged (%w): download it again", err)
	}
	records, ok := recordsOf(tree, data)
	if !ok {
		return nil, errors.New("is damaged (the tree is longer than the file): download it again")
	}
	db := &DB{tree: tree, records: records, values: mmdbdata.NewDecoder(records, 0), codes: allCodes()}
	if err := db.check(); err != nil {
		return nil, err
	}
	return db, nil
}

// recordsOf returns the bytes between the tree and the metadata. The offsets in the tree
// count from their start.
func recordsOf(tree *maxminddb.Reader, data []byte) (records []byte, ok bool) {
	start := tree.Metadata.NodeCount*(tree.Metadata.RecordSize/4) + separatorBytes
	end := bytes.LastIndex(data, []byte(marker))
	if end < 0 || start > uint(end) {
		return nil, false
	}
	return data[start:end], true
}

// check searches for a first country. check also visits networks without data and aliases,
// so that each step ends at a network for any tree.
func (db *DB) check() error {
	seen := 0
	for network := range db.tree.Networks(maxminddb.IncludeNetworksWithoutData(), maxminddb.IncludeAliasedNetworks()) {
		if err := network.Err(); err != nil {
			return fmt.Errorf("is damaged (%w): download it again", err)
		}
		if network.Found() {
			if _, ok := db.country(uint(network.Offset())); ok {
				return nil
			}
		}
		if seen++; seen == maxNetworks {
			break
		}
	}
	return fmt.Errorf("has no countries (its type is %q): %s", shortened(db.tree.Metadata.DatabaseType), which)
}

// shortened cuts a text of the file for a message.
func shortened(text string) string {
	const enough = 48
	if len(text) <= enough {
		return text
	}
	return text[:enough] + "..."
}
