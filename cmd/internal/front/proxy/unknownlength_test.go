package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestEmptyBodyOfUnknownLength checks that a GET from HTTP/2 whose stream ends with an empty DATA
// frame reaches the service without a body, not with an empty body in chunks.
func TestEmptyBodyOfUnknownLength(t *testing.T) {
	seen := make(chan string, 1)
	p := beforeHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- strings.Join(r.TransferEncoding, ",")
	}), onPlane)
	_, address := start(t, p, nil, ServerConfig{})
	c := httpClient(t, nil, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/", io.MultiReader(strings.NewReader("")))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = -1
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := <-seen; got != "" {
			t.Errorf("%s: the service got Transfer-Encoding %q, want none", method, got)
		}
	}
}
