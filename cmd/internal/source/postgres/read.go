package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// pageRows bounds the rows of one statement, so that each statement is short.
	pageRows = 500
	// maxNews bounds the rows of the log that are read one by one. Behind more rows, all objects are read.
	maxNews = 10_000
)

// position is what a Source has read.
type position struct {
	snapshot string // What the last read has seen.
	server   string // The run of the server, its timeline, the tables and connection.recovered. Snapshots of others say nothing.
	pruned   int64  // The rows that were removed from the log by then.
	rows     int64  // All rows of the log so far: the revision of the source.
	objects  int64
	bytes    int // At most so many bytes are in the texts of all objects: former versions may count too.
}

// head is the state of the database at the snapshot of a transaction or a statement.
type head struct {
	position

	readOnly bool
	version  int
	known    bool // No row of the log was removed that the last position has not seen.
	news     int64
}

var (
	errStandby  = errors.New("the server is a replica: name the primary in the hosts")
	errReadOnly = errors.New("the server refuses writes, such as a former primary: name the primary in the hosts")
)

// head reads the state. last is a former position; the empty one compares with nothing.
func (c *connection) head(ctx context.Context, s *Source, last position) (head, error) {
	if last.snapshot == "" {
		last.snapshot = "1:1:"
	}
	var h head
	found := false
	err := c.rows(ctx, func(r row) error {
		found = true
		return r.scan(&h.snapshot, &h.server, &h.readOnly, &h.version, &h.pruned, &h.known, &h.news)
	}, s.sql(headSQL), last.snapshot, maxNews+1)
	switch {
	case err != nil:
		return h, err
	case !found || h.version != schemaVersion:
		return h, fmt.Errorf("the schema %s has version %d, and this program needs version %d: "+
			"run headgate ctl source init | psql DATABASE", s.config.Schema, h.version, schemaVersion)
	case h.server == "":
		return h, errStandby
	case h.readOnly && !c.readOnly:
		return h, errReadOnly
	}
	h.server += " " + c.recovered
	h.known = h.server == last.server && (h.known || h.pruned == last.pruned) && h.news <= maxNews
	h.rows, h.objects, h.bytes = last.rows, last.objects, last.bytes
	return h, nil
}

// inSnapshot runs a function in a transaction that sees the database at one time. The lock comes before the snapshot. Otherwise,
// a TRUNCATE that commits between them would show an empty table: it ignores the snapshots of others.
func (c *connection) inSnapshot(ctx context.Context, s *Source, read func() error) error {
	if err := c.run(ctx, beginRead); err != nil {
		return err
	}
	if err := c.run(ctx, s.sql(lockSQL)); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err // The connection is closed, and the transaction with it.
	}
	return c.run(ctx, "COMMIT")
}

// all reads all objects.
func (c *connection) all(ctx context.Context, s *Source) (position, source.Change, error) {
	var h head
	change := source.Change{All: true}
	err := c.inSnapshot(ctx, s, func() error {
		var err error
		if h, err = c.head(ctx, s, position{}); err != nil {
			return err
		}
		err = c.rows(ctx, func(r row) error { return r.scan(&h.rows, &h.objects) }, s.sql(countSQL), s.config.MaxObjects+1)
		if err != nil {
			return err
		}
		h.rows += h.pruned
		if h.objects > int64(s.config.MaxObjects) {
			return s.tooMany()
		}
		change.Objects, h.bytes, err = c.pages(ctx, s, int(h.objects))
		return err
	})
	change.Revision, change.Position = h.revision(), h.rows
	return h.position, change, err
}

// pages reads the objects in the order of their keys, and counts the bytes of their texts.
func (c *connection) pages(ctx context.Context, s *Source, n int) (objects []source.Object, bytes int, err error) {
	objects = make([]source.Object, 0, n)
	kind, name, total := "", "", 0
	for seen := pageRows; seen == pageRows; {
		seen = 0
		err := c.rows(ctx, func(r row) error {
			var body string
			var revision int64
			if err := r.scan(&kind, &name, &body, &revision); err != nil {
				return err
			}
			seen++
			if key, ok := c.key(kind, name); ok {
				objects = append(objects, object(key, body, revision))
				bytes += len(objects[len(objects)-1].Text)
			}
			if total++; total > n {
				return errLongNames
			}
			return s.checkBytes(bytes)
		}, s.sql(pageSQL), kind, name, pageRows)
		if err != nil {
			return nil, 0, err
		}
	}
	return objects, bytes, nil
}

// errLongNames says that pages overlap, because names are longer than what is read of them.
var errLongNames = errors.New("names are longer than the table's own bounds allow: shorten them, and add the bounds again")

// revision is the number of changes of rows so far. It is the same for all that have seen the same transactions.
func (p position) revision() string { return strconv.FormatInt(p.rows, 10) }

// object makes an object of a row, without more of a long text than the receiver needs.
func object(key source.Key, body string, revision int64) source.Object {
	if len(body) > source.MaxText {
		body = strings.Clone(body[:source.MaxText+1]) // The rest has up to three times as many bytes.
	}
	return source.Object{Key: key, Text: body, Revision: revision}
}

// key reads the columns of a key. ok is false for a row that the table's own bounds would refuse.
func (c *connection) key(kind, name string) (key source.Key, ok bool) {
	for _, k := range source.AllKinds() {
		if kind == k.String() {
			key = source.Key{Kind: k, Name: name}
		}
	}
	err := key.Check()
	if err != nil && kind != "" {
		c.foreign.add(kind, name, err)
	}
	return key, err == nil
}

// checkBytes says that the texts are too long together.
func (s *Source) checkBytes(n int) error {
	if n <= s.config.MaxBytes {
		return nil
	}
	return fmt.Errorf("the objects have at least %d bytes, and the bound is %d: delete or shorten some: until then, the last objects that "+
		"were read are in force", n, s.config.MaxBytes)
}

func (s *Source) tooMany() error {
	return fmt.Errorf("there are more than %d objects: delete some: until then, the last objects that were read are in force",
		s.config.MaxObjects)
}
