package httplimit

import (
	"net/http"

	"github.com/headgate/headgate/internal/cors"
	"github.com/headgate/headgate/internal/fields"
)

// CORS lets pages of other origins read the answers of this package, and exempts their preflights from rules: see NewCORS. Without its
// fields, a browser hides a refusal from the page, which cannot wait for the time in Retry-After.
type CORS = cors.Policy

// CORSConfig describes a CORS.
type CORSConfig = cors.Config

// NewCORS checks c. An error names the origin that no browser sends.
func NewCORS(c CORSConfig) (*CORS, error) { return cors.New(c) }

// crossOrigin adds the fields of CORS to an answer of this package.
func (x *Exchange) crossOrigin(w http.ResponseWriter) {
	if x.CORS != nil {
		x.CORS.Own(fields.Map(w.Header()), x.Request.Header)
	}
}
