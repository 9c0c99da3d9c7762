package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// trickle opens n requests at a server. Their bodies never end, and only one byte of each
// is sent.
var trickle = map[string]func(t *testing.T, at string, n int){
	"HTTP/1.1": func(t *testing.T, at string, n int) {
		t.Helper()
		for range n {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			_, _ = io.WriteString(conn, "POST /v1/product HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx")
		}
	},
	"HTTP/2": func(t *testing.T, at string, n int) {
		t.Helper()
		h := transport{}.hoard(t, at, false)
		for range n {
			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/v1/product"}} {
				_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
			}
			_ = h.framer.WriteHeaders(wire.HeadersFrameParam{StreamID: h.next, BlockFragment: block.Bytes(), EndHeaders: true})
			_ = h.framer.WriteData(h.next, false, []byte("x"))
			h.next += 2
		}
	},
}

// TestBodiesThatAreNotSent checks requests whose clients stop sending their bodies. The
// requests keep their places only until others need them. Otherwise one HTTP/2
// connection could occupy all places.
func TestBodiesThatAreNotSent(t *testing.T) {
	const places = 4
	for name, open := range trickle {
		t.Run(name, func(t *testing.T) {
			p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				fine(w, r)
			}), func(c *Config) { c.BodyIdle = time.Hour })
			_, at := start(t, p, nil, ServerConfig{MaxRequests: places})
			open(t, at, places)
			eventually(t, "all places to be used", func() bool { return p.traffic.InFlight.Load() == places })
			innocent := httpClient(t, nil, http1Only)
			eventually(t, "a well-behaved client to be served", func() bool { return statusAt(innocent, at) == http.StatusOK })
			for range places - 1 {
				open(t, at, 1)
			}
			eventually(t, "the well-behaved client to be served again", func() bool { return statusAt(innocent, at) == http.StatusOK })
		})
	}
}

func statusAt(client *http.Client, at string) int {
	resp, err := client.Get("http://" + at + "/v1/product")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestSilentStreamsKeepTheirPlaces checks that a bidirectional stream keeps its place after
// its response has started, even if the client sends nothing.
func TestSilentStreamsKeepTheirPlaces(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			fine(w, r)
			return
		}
		_ = http.NewResponseController(w).EnableFullDuplex()
		_ = http.NewResponseController(w).Flush()
		sent, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, sent)
	}), func(c *Config) { c.BodyIdle = time.Hour })
	_, at := start(t, p, nil, ServerConfig{MaxRequests: 1})
	read, write := io.Pipe()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/v1/product", read)
	began, streaming := make(chan *http.Response, 1), httpClient(t, nil, http2Only)
	go func() {
		resp, err := streaming.Do(req) //nolint:bodyclose // because the test closes it.
		if err != nil {
			t.Error(err)
		}
		began <- resp
	}()
	_, _ = io.WriteString(write, "chunk1")
	resp := <-began
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	innocent := httpClient(t, nil, http1Only)
	for end := time.Now().Add(3 * unread); time.Now().Before(end); {
		if got := statusAt(innocent, at); got != http.StatusServiceUnavailable {
			t.Fatalf("another request got status %d", got)
		}
	}
	_, _ = io.WriteString(write, ", and another")
	_ = write.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "19" || err != nil {
		t.Errorf("the stream ended with %q: %v", body, err)
	}
}
