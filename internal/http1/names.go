package http1

import (
	"net/http"
	"slices"
)

// AppendNames appends the names of h to names, sorted, except those for which skip returns true.
// It allocates only if names has not enough capacity.
func AppendNames(names []string, h http.Header, skip func(name string) bool) []string {
	start := len(names)
	for name := range h {
		if !skip(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[start:])
	return names
}
