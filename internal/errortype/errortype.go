// Package errortype finds an error by its type, as errors.AsType of Go 1.26 does. The library supports Go 1.25.
package errortype

// As returns the first error of type T in the tree of err. Unlike errors.As it allocates nothing, found or not: the guard asks for
// the types of a store's errors on the way of a request.
//
//nolint:errorlint // This is the walk over the tree.
func As[T error](err error) (T, bool) {
	var none T
	for err != nil {
		if found, ok := err.(T); ok {
			return found, true
		}
		if x, ok := err.(interface{ As(target any) bool }); ok {
			found := new(T)
			if x.As(found) {
				return *found, true
			}
		}
		switch x := err.(type) {
		case interface{ Unwrap() error }:
			err = x.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range x.Unwrap() {
				if found, ok := As[T](one); ok {
					return found, true
				}
			}
			return none, false
		default:
			return none, false
		}
	}
	return none, false
}
