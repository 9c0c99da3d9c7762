package postgres

import (
	"log/slog"
	"time"
)

// foreignEvery is the shortest interval of lines about rows that are no objects.
const foreignEvery = 10 * time.Second

// foreignRows counts rows that are no objects, and has the first one as an example.
type foreignRows struct {
	n          int
	kind, name string
	err        error
	last       time.Time // The last line.
}

func (f *foreignRows) add(kind, name string, err error) {
	if f.n == 0 {
		f.kind, f.name, f.err = kind, name, err
	}
	f.n++
}

// log writes a line about the rows, unless there was one a moment ago. Then the rows stay counted for the next line.
func (f *foreignRows) log(to *slog.Logger) {
	now := time.Now()
	if f.n == 0 || !f.last.IsZero() && now.Sub(f.last) < foreignEvery {
		return
	}
	to.Warn("the table of objects has rows that are no objects: they are ignored: rename or delete them",
		"rows", f.n, "kind", f.kind, "name", f.name, "error", f.err)
	*f = foreignRows{last: now}
}
