package meter

import (
	"errors"
	"fmt"
	"os"

	"github.com/headgate/headgate/meter/journal"
)

// maxAside bounds the file of records that an endpoint does not take. Beyond it the output waits for the operator.
const maxAside = 16 << 20

const privateMode = 0o600

// appendAside appends a record to the file, and syncs it.
func appendAside(name string, r *journal.Record) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, privateMode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() >= maxAside {
		err = fmt.Errorf("%s is full: correct its records at the endpoint, and remove the file", name)
	}
	if err == nil {
		if _, err = f.Write(appendLine(nil, r)); err == nil {
			err = f.Sync()
		}
	}
	return errors.Join(err, f.Close())
}
