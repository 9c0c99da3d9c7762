package ctl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTokenFile: commands send the token of the file, and a refusal says how to name one.
func TestTokenFile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ file, problem string }{
		{file, ""},
		{"", "--token-file"},
		{file + ".none", "no such file"},
	} {
		c := &Instance{Admin: strings.TrimPrefix(server.URL, "http://"), JSON: true, TokenFile: row.file}
		for name, err := range map[string]error{"status": c.Status(t.Context(), io.Discard), "reload": c.Reload(t.Context(), io.Discard)} {
			if (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
				t.Errorf("%s with the file %q: %v, want %q", name, row.file, err, row.problem)
			}
		}
	}
}

// TestBusy: a limit of the server is not the fault of another version.
func TestBusy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the client is above server.limits.address: ask less often", http.StatusTooManyRequests)
	}))
	defer server.Close()
	c := &Instance{Admin: strings.TrimPrefix(server.URL, "http://")}
	for name, err := range map[string]error{"status": c.Status(t.Context(), io.Discard), "reload": c.Reload(t.Context(), io.Discard)} {
		if err == nil || !strings.Contains(err.Error(), "server.limits.address: ask less often, or raise the limit") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
