package openapi

import (
	_ "embed" // for document
	"io"
	"net/http"
)

// Pattern is the pattern of http.ServeMux that Handler handles. ServeMux answers other methods with 405.
const Pattern = "GET /openapi.json"

// document is the same in every build. Its info.version is that of the protocol, like the 1 in /v1/decide. So a client
// that was generated from the document does not change with each release of the server.
//
//go:embed openapi.json
var document string

// Document gives the document.
func Document() string { return document }

// Handler serves the document. It has no secrets, so every client may read it.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")   // An upgrade of the server may change it.
		_, _ = io.WriteString(w, Document()) // The client has gone if this fails.
	})
}
