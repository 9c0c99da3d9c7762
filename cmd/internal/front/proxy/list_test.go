package proxy

import (
	"net/http"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// list returns the fields of h.
func list(h http.Header) *http1.List {
	l := new(http1.List)
	l.Load(h)
	return l
}
