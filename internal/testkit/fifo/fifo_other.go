//go:build !unix

package fifo

import "errors"

// Make returns errors.ErrUnsupported, because this system has no named pipes in its file system.
func Make(string) error { return errors.ErrUnsupported }
