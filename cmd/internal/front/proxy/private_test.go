package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
)

// reporting is a stage that reads a field of the answer that is for it alone.
type reporting struct{ watching }

func (*reporting) Facts() guard.Facts {
	return guard.Facts{Answer: []string{"X-Work"}, Private: []string{"X-Work"}}
}

// TestPrivateFieldsOfTrailers checks that a field for a stage reaches no client in a trailer, and that the
// announcement does not name it.
func TestPrivateFieldsOfTrailers(t *testing.T) {
	g, err := guard.New(guard.Config{Stages: []guard.Stage{new(reporting)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, announced := range []string{"X-Work", "X-Work, X-Sum"} {
		f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", announced)
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Work", "cpu=1s")
			w.Header().Set("X-Sum", "1")
		}), func(c *Config) { c.Guard = g })
		got := talk(t, strings.TrimPrefix(f.url, "http://"), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if strings.Contains(got, "X-Work") || strings.Contains(got, "X-Sum: 1") != strings.Contains(announced, "X-Sum") {
			t.Errorf("announced %q: got %q", announced, got)
		}
	}
}

// TestPrivateFieldsOfEarlyResponses checks that a field for a stage reaches no client in an informational
// response, or in one that upgrades the connection.
func TestPrivateFieldsOfEarlyResponses(t *testing.T) {
	g, err := guard.New(guard.Config{Stages: []guard.Stage{new(reporting)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ sent, status string }{
		"hints":   {"Connection: close\r\n", "103 Early Hints"},
		"upgrade": {"Connection: Upgrade\r\nUpgrade: chat\r\n", "101 Switching Protocols"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Work", "cpu=1s")
				w.Header().Set("X-Kept", "yes")
				if r.Header.Get("Upgrade") == "" {
					w.WriteHeader(http.StatusEarlyHints)
					return
				}
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\nX-Work: cpu=1s\r\nX-Kept: yes\r\n\r\n")
			}), func(c *Config) { c.Guard = g })
			got := talk(t, strings.TrimPrefix(f.url, "http://"), "GET / HTTP/1.1\r\nHost: a\r\n"+c.sent+"\r\n")
			if !strings.Contains(got, c.status) || !strings.Contains(got, "X-Kept") || strings.Contains(got, "X-Work") {
				t.Errorf("got %q, want a response %s without X-Work", got, c.status)
			}
		})
	}
}
