package meter

import (
	"errors"
	"os"

	"github.com/headgate/headgate/internal/meter/journal"
)

// maxAside bounds the file of records that an endpoint does not take. Further ones are dropped and counted: a client could make many,
// and the usage of all other customers must not wait for them.
const maxAside = 16 << 20

const privateMode = 0o600

// errAsideFull says that the file has no capacity for another record.
var errAsideFull = errors.New("the file of refused records is full: correct its records at the endpoint, and remove the file")

// appendAside appends a record to the file, and syncs it. If that fails, it cuts what it has written: the record comes again.
func appendAside(name string, r *journal.Record) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, privateMode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() >= maxAside {
		err = errAsideFull
	}
	if err == nil {
		err = writeAside(f, info.Size(), r)
	}
	return errors.Join(err, f.Close())
}

// writeAside writes a line at the end of the file. After a kill, the last line can be torn: it gets an end, so that it spoils no other one.
func writeAside(f asideFile, size int64, r *journal.Record) error {
	var line []byte
	if last := [1]byte{'\n'}; size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append(line, '\n')
		}
	}
	_, err := f.Write(appendLine(line, r))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(size))
	}
	return err
}

// asideFile is an *os.File, or one that fails in tests.
type asideFile interface {
	ReadAt(text []byte, at int64) (int, error)
	Write(text []byte) (int, error)
	Truncate(size int64) error
	Sync() error
}
