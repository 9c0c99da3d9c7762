package etcd

import (
	"log/slog"
	"time"
)

// foreignEvery is the shortest interval of lines about keys that are no objects.
const foreignEvery = 10 * time.Second

// foreignKeys counts keys that are no objects, and has the first one as an example.
type foreignKeys struct {
	n     int
	first string
	err   error
}

func (f *foreignKeys) add(key []byte, err error) {
	if f.n == 0 {
		f.first, f.err = string(key[:min(len(key), 300)]), err
	}
	f.n++
}

// log writes a line about the keys, unless there was one a moment ago. Then the keys stay counted for the next line.
func (f *foreignKeys) log(to *slog.Logger, last *time.Time) {
	now := time.Now()
	if f.n == 0 || !last.IsZero() && now.Sub(*last) < foreignEvery {
		return
	}
	to.Warn("etcd has keys that are no objects: they are ignored: rename or delete them",
		"keys", f.n, "first", f.first, "error", f.err)
	*f, *last = foreignKeys{}, now
}
