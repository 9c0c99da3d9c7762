package fields_test

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate/internal/fields"
)

// TestNarrowEncodings is a table of what clients accept, and what the service is told.
func TestNarrowEncodings(t *testing.T) {
	for sent, want := range map[string]string{
		"gzip": "gzip", "gzip, identity": "gzip, identity", "identity": "identity", "": "", "GZIP": "GZIP",
		"gzip, deflate": "gzip", "gzip, deflate, br, zstd": "gzip", "br;q=1.0, gzip;q=0.8, *;q=0.1": "gzip",
		"br": "identity", "br, zstd": "identity", "gzip;q=0, br": "identity", "gzip; q=0.000, br": "identity", "gzip;q=0.001, br": "gzip",
		"*": "gzip", "*;q=0": "identity",
	} {
		h := http.Header{"Accept-Encoding": {sent}}
		if fields.NarrowEncodings(fields.Map(h)); h.Get("Accept-Encoding") != want {
			t.Errorf("%q becomes %q, want %q", sent, h.Get("Accept-Encoding"), want)
		}
	}
	h := http.Header{}
	if fields.NarrowEncodings(fields.Map(h)); len(h) != 0 {
		t.Errorf("a request without the field gets %q", h)
	}
	h = http.Header{"Accept-Encoding": {"br", "gzip"}}
	if fields.NarrowEncodings(fields.Map(h)); len(h["Accept-Encoding"]) != 1 || h.Get("Accept-Encoding") != "gzip" {
		t.Errorf("two lines become %q", h)
	}
}
