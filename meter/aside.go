package meter

import (
	"errors"
	"os"

	"github.com/headgate/headgate/meter/journal"
)

// maxAside bounds the file of records that an endpoint does not take. Further ones are dropped and counted: a client could make many,
// and the usage of all other customers must not wait for them.
const maxAside = 16 << 20

const privateMode = 0o600

// errAsideFull says that the file has no capacity for another record.
var errAsideFull = errors.New("the file of refused records is full: correct its records at the endpoint, and remove the file")

// appendAside appends a record to the file, and syncs it.
func appendAside(name string, r *journal.Record) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, privateMode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() >= maxAside {
		err = errAsideFull
	}
	if err == nil {
		if _, err = f.Write(appendLine(nil, r)); err == nil {
			err = f.Sync()
		}
	}
	return errors.Join(err, f.Close())
}
