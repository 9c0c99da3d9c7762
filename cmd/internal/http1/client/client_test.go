package client_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

func get() *client.Request {
	return &client.Request{Method: http.MethodGet, Target: "/", Host: "service.example"}
}

// answered is an answer with its body.
type answered struct {
	client.Answer

	body string
	err  error // of reading the body; nil at its end
}

// do sends a request, reads the whole answer and closes it.
func do(tb testing.TB, c *client.Client, r *client.Request) answered {
	tb.Helper()
	a := answered{}
	if err := c.Do(tb.Context(), r, &a.Answer); err != nil {
		tb.Fatal(err)
	}
	body, err := io.ReadAll(&a.Answer)
	a.Close()
	a.body, a.err = string(body), err
	return a
}

const plain = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Name: value\r\n\r\nhello"

func TestPlainAnswersShareOneConnection(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		s := serve(t, network, answers(plain))
		c := s.client(t, nil)
		for range 3 {
			a := do(t, c, get())
			if a.Status != 200 || a.Length != 5 || a.body != "hello" || a.err != nil || a.Header.Get("X-Name") != "value" {
				t.Errorf("%s: answer %+v", network, a)
			}
		}
		if n := s.accepted(); n != 1 {
			t.Errorf("%s: %d connections, want 1", network, n)
		}
	}
}
