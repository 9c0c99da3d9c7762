// Package errortype finds an error by its type, as errors.AsType of Go 1.26 does. The library supports Go 1.25.
package errortype

import "errors"

// As returns the first error of type T in the tree of err.
func As[T error](err error) (T, bool) {
	var found T
	ok := errors.As(err, &found)
	return found, ok
}
