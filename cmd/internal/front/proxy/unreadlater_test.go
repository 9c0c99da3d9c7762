package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// flood sends bytes until the connection breaks. An upgrade gets them behind status 101.
func flood(w http.ResponseWriter, r *http.Request) {
	chunk, to := make([]byte, 1<<20), io.Writer(w)
	if r.Header.Get("Upgrade") != "" {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: flood\r\n\r\n")
		to = conn
	}
	for {
		if _, err := to.Write(chunk); err != nil {
			return
		}
	}
}

// TestUnreadLaterAnswer checks that the bound of writes also applies shortly after another
// request on the connection. net/http removes the write deadline between two requests and
// before an upgrade.
func TestUnreadLaterAnswer(t *testing.T) { //nolint:tparallel // Its bounds are for a machine without other tests.
	const first = "GET /fine HTTP/1.1\r\nHost: a\r\n"
	for _, c := range []struct{ name, first, later string }{
		{"a response after a plain request", first + "\r\n", "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"a response after a request of net/http", first + "Expect: 100-continue\r\n\r\n", "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"an upgrade", first + "\r\n", "GET /flood HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: flood\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/flood") {
					flood(w, r)
					return
				}
				fine(w, r)
			}), func(c *Config) { c.BodyIdle = 2 * time.Second })
			_, at := start(t, p, nil, ServerConfig{})
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, c.first)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			_, _ = io.WriteString(conn, c.later)
			eventually(t, "the later request", func() bool { return p.traffic.InFlight.Load() == 1 })
			eventually(t, "the proxy to give up", func() bool { return p.traffic.InFlight.Load() == 0 })
		})
	}
}
