package client_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// atHand is a body whose first bytes have arrived.
type atHand struct {
	io.Reader

	bytes int
}

func (b *atHand) AtHand() int { return b.bytes }

// TestSmallBodies checks that a body that has arrived is sent with the head in one write, and other
// bodies as before.
func TestSmallBodies(t *testing.T) {
	reads := make(chan int, 1)
	s := serve(t, "unix", func(p *peer) {
		for {
			buf := make([]byte, 64<<10)
			n, err := p.Read(buf)
			if err != nil {
				return
			}
			reads <- n
			r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(string(buf[:n])), p)))
			if err != nil {
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			_, _ = io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"+string(body[len(body)-1:]))
		}
	})
	c := s.client(t, nil)
	for _, size := range []int{1, 5000, 14 << 10, 20 << 10} {
		text := strings.Repeat("a", size-1) + "z"
		for _, here := range []int{size, size - 1} {
			if a := do(t, c, post(&atHand{strings.NewReader(text), here}, int64(size))); a.body != "z" {
				t.Errorf("%d bytes: answer %+v", size, a)
			}
			if n := <-reads; here == size && size < 15<<10 && n <= size {
				t.Errorf("%d bytes: the first read of the service has %d bytes, want the head and the body", size, n)
			}
		}
	}
	if n := s.accepted(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestSmallBodiesThatAreOdd checks bodies that are not as long as they say, and those that fail.
func TestSmallBodiesThatAreOdd(t *testing.T) {
	s := serve(t, "tcp", func(p *peer) { _, _ = io.Copy(io.Discard, p) })
	c := s.client(t, nil)
	failed := errors.New("the client has gone")
	for name, b := range map[string]io.Reader{
		"longer":  strings.NewReader("abcdef"),
		"shorter": strings.NewReader("ab"),
		"broken":  brokenBody{strings.NewReader("ab"), failed},
	} {
		var a client.Answer
		err := c.Do(t.Context(), post(&atHand{b, 5}, 5), &a)
		if err == nil || name == "broken" && !errors.Is(err, failed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
