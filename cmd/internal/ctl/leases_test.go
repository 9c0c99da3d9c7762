package ctl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestLeasesNotThere: an instance without leases, and a resource without claims, say so. Another 404 is that of another program.
func TestLeasesNotThere(t *testing.T) {
	for text, want := range map[string]string{
		admin.NoLeases: "headgate server with the section lease", admin.NoClaim: "no holder claims", "404 page not found": "of the same version",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusNotFound) }))
		c := &Instance{Admin: strings.TrimPrefix(server.URL, "http://")}
		if err := c.Leases(t.Context(), io.Discard, "db/a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		server.Close()
	}
}
