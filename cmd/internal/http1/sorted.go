package http1

import (
	"net/http"
	"slices"
	"strings"
)

// Field is a field of a header.
type Field struct {
	Name   string
	Values []string
}

// AppendSorted appends the fields of h to list, sorted by name, except those for which skip
// returns true. It allocates only if list has not enough capacity.
func AppendSorted(list []Field, h http.Header, skip func(name string) bool) []Field {
	start := len(list)
	for name, values := range h {
		if !skip(name) {
			list = append(list, Field{name, values})
		}
	}
	slices.SortFunc(list[start:], func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return list
}
