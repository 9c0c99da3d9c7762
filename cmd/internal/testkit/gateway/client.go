package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client sends requests as they are written, from one address.
type client struct {
	dialer net.Dialer
	at     string
}

func newClient(at, from string) *client {
	return &client{net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}, at}
}

// answer is what a client of a gateway sees.
type answer struct {
	status int
	header http.Header
}

// send sends a request on a connection of its own. A field Host replaces the usual one.
func (c *client) send(t *testing.T, method, target, body string, fields ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := c.dialer.DialContext(ctx, "tcp", c.at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if !strings.HasPrefix(strings.Join(fields, "\n"), "Host: ") {
		fields = append([]string{"Host: a.example"}, fields...)
	}
	text := method + " " + target + " HTTP/1.1\r\n" + strings.Join(fields, "\r\n") + "\r\n"
	if body != "" || method == http.MethodPost {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(conn, text+"\r\n"+body); err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	for answers := bufio.NewReader(conn); ; {
		got, err := http.ReadResponse(answers, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
		_, _ = io.Copy(io.Discard, got.Body) // Only the header matters.
		_ = got.Body.Close()
		if got.StatusCode >= http.StatusOK { // An answer 100 comes before.
			return answer{got.StatusCode, got.Header}
		}
	}
}
