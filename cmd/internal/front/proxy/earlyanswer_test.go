package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/listen"
)

// TestEarlyAnswerToSlowUpload checks that a client which is still sending its body when the
// service answers has time to read the answer before the connection is reset.
func TestEarlyAnswerToSlowUpload(t *testing.T) {
	behind := opened(t, listen.Config{Address: "127.0.0.1:0"})
	t.Cleanup(func() { _ = behind.Close() })
	go func() {
		for {
			up, err := behind.Accept()
			if err != nil {
				return
			}
			go func() {
				defer up.Close()
				_, _ = up.Read(make([]byte, 4096))
				_, _ = io.WriteString(up, "HTTP/1.1 413 Too\r\nContent-Length: 5\r\n\r\nearly")
				_, _ = io.Copy(io.Discard, up)
			}()
		}
	}()
	p := before(t, UpstreamConfig{URL: parsed(t, "http://"+behind.Addr().String())}, onPlane, func(c *Config) { c.BodyIdle = 10 * time.Second })
	_, address := start(t, p, nil, ServerConfig{})
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for range 10 { // The pieces of the body arrive while the response is on its way.
		<-time.After(20 * time.Millisecond)
		if _, err := c.Write(make([]byte, 10000)); err != nil {
			t.Fatalf("the connection was reset while the body was sent: %v", err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d, want 413", resp.StatusCode)
	}
}
