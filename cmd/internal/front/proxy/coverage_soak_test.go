//go:build soak

package proxy

import (
	"os"
	"strings"
	"testing"
)

// TestSoakCoverage replays the HTTP/1.1 requests of a real access log, in Combined Log Format.
// HEADGATE_ACCESS_LOG is its path.
func TestSoakCoverage(t *testing.T) {
	const least = 0.99
	text, err := os.ReadFile(os.Getenv("HEADGATE_ACCESS_LOG"))
	if err != nil {
		t.Fatalf("%v: set HEADGATE_ACCESS_LOG to the path of an access log in Combined Log Format", err)
	}
	var requests []string
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(line, `"`)
		if len(parts) < 6 || !strings.HasSuffix(parts[1], " HTTP/1.1") {
			continue
		}
		request := parts[1] + "\r\nHost: www.example.com\r\nReferer: " + parts[3] + "\r\nUser-Agent: " + parts[5] + "\r\n"
		if strings.HasPrefix(request, "POST ") {
			request += "Content-Length: 0\r\n"
		}
		requests = append(requests, request+"\r\n")
	}
	share := replayed(t, requests)
	t.Logf("%.4f of %d requests took the fast path", share, len(requests))
	if share < least {
		t.Errorf("%.4f of the requests took the fast path, want at least %v", share, least)
	}
}
