//go:build !unix

package fifo

import "errors"

// Make gives an error: files of this system are no named pipes.
func Make(string) error { return errors.ErrUnsupported }
