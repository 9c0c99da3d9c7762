package region

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oschwald/maxminddb-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"github.com/headgate/headgate/readfile"
)

const (
	// maxBytes bounds a file, which is kept in memory whole: a database of countries
	// has megabytes, one of cities tens or hundreds of them.
	maxBytes = 512 << 20
	// maxNetworks bounds the search for a first country, to a tenth of a second or
	// so. A database of countries has one among its first networks.
	maxNetworks = 1 << 18
	// separatorBytes lie between the tree and the records, and marker before the
	// metadata (MaxMind DB File Format Specification 2.0).
	separatorBytes = 16
	marker         = "\xAB\xCD\xEFMaxMind.com"
)

// which says what file to take instead of a wrong one.
const which = "use a database of countries, cities or the Enterprise kind, like GeoLite2-Country.mmdb"

// Open reads a database, which takes as much memory as the file has bytes, 512 MiB
// at most. The error says what is wrong with the file, and which to use instead.
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

// read reads a regular file. Its size is taken once: one that is being written is
// an error, or is judged like any other.
func read(file string) ([]byte, error) {
	var one readfile.Pending[[]byte]
	data, err := one.Do(file, func() ([]byte, error) { return readNow(file) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: put the database there, or name where it is", err)
	case errors.Is(err, readfile.ErrNotRegular):
		return nil, fmt.Errorf("%w: name the .mmdb file itself", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: let the process read it", err)
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
		return nil, fmt.Errorf("%s has %d bytes, and %d fit: use a smaller one, like GeoLite2-Country.mmdb", file, info.Size(), maxBytes)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("reading %s: %w: try again; write new databases elsewhere and rename them into place", file, err)
	}
	return data, nil
}

// parse makes a DB of a file's content, which it keeps. Its errors go on from the
// file's name.
func parse(data []byte) (*DB, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")), bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return nil, errors.New("is an archive: unpack it, and use the .mmdb file in it")
	case !bytes.Contains(data, []byte(marker)):
		return nil, fmt.Errorf("is no MaxMind database: %s", which)
	}
	tree, err := maxminddb.OpenBytes(data, maxminddb.DisableStringCache())
	if err != nil {
		return nil, fmt.Errorf("is damaged (%w): download it again", err)
	}
	records, ok := recordsOf(tree, data)
	if !ok {
		return nil, errors.New("is damaged (the tree does not fit): download it again")
	}
	db := &DB{tree: tree, records: records, values: mmdbdata.NewDecoder(records, 0), codes: allCodes()}
	if err := db.check(); err != nil {
		return nil, err
	}
	return db, nil
}

// recordsOf gives the part of the file that the tree's offsets count from: what
// lies between the tree and the metadata.
func recordsOf(tree *maxminddb.Reader, data []byte) (records []byte, ok bool) {
	start := tree.Metadata.NodeCount*(tree.Metadata.RecordSize/4) + separatorBytes
	end := bytes.LastIndex(data, []byte(marker))
	if end < 0 || start > uint(end) {
		return nil, false
	}
	return data[start:end], true
}

// check looks for a first country. Networks without data and aliases are walked
// too: so each step ends at a network, whatever the tree looks like.
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

// shortened cuts a text of the file to what a message should repeat.
func shortened(text string) string {
	const enough = 48
	if len(text) <= enough {
		return text
	}
	return text[:enough] + "..."
}
