package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// echo answers each request with its target and the length of its body. The target decides
// how: in chunks, with a length, before the body is read, or with bytes after the end.
func echo(p *peer) {
	for {
		r, err := http.ReadRequest(p.in)
		if err != nil {
			return
		}
		early := strings.Contains(r.URL.Path, "early")
		n := int64(0)
		if !early {
			if n, err = io.Copy(io.Discard, r.Body); err != nil {
				return
			}
		}
		body := fmt.Sprint(r.URL.Path, " ", n)
		switch {
		case early:
			_, err = fmt.Fprintf(p, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		case strings.Contains(r.URL.Path, "chunks"):
			_, err = fmt.Fprintf(p, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		case strings.Contains(r.URL.Path, "stray"):
			_, err = fmt.Fprintf(p, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s%s", len(body), body, plain)
		default:
			_, err = fmt.Fprintf(p, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
		if err != nil || early {
			return
		}
	}
}

// TestMixedRequestsGetTheirOwnAnswers sends requests of all kinds at the same time. Some
// are canceled, and some answers are left unread.
func TestMixedRequestsGetTheirOwnAnswers(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		s := serve(t, network, echo)
		c := s.client(t, func(c *client.Config) { c.MaxIdle, c.Timeout, c.BodyIdle = 4, time.Minute, time.Minute })
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(caller)))
				a := client.Answer{}
				for number := range 150 {
					kind := []string{"length", "chunks", "stray", "early", "canceled", "unread"}[random.IntN(6)]
					if err := mixed(t, c, &a, fmt.Sprintf("/%s/%d/%d", kind, caller, number), random.IntN(3)*random.IntN(50_000)); err != nil {
						t.Errorf("%s %s: %v", network, kind, err)
					}
				}
			})
		}
		callers.Wait()
	}
}

func mixed(t *testing.T, c *client.Client, a *client.Answer, path string, length int) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &client.Request{Method: http.MethodGet, Target: path, Host: "h"}
	if length > 0 {
		r.Method, r.Length, r.Body = http.MethodPost, int64(length), strings.NewReader(strings.Repeat("a", length))
	}
	if strings.Contains(path, "canceled") {
		go cancel()
	}
	err := c.Do(ctx, r, a)
	defer a.Close()
	if err == nil && strings.Contains(path, "unread") {
		return nil
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(a)
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil
	case err != nil && strings.Contains(path, "early") && length > 0:
		return nil // The service may reset the connection before its answer is read.
	case err != nil:
		return err
	}
	if got := string(body); !strings.HasPrefix(got, path+" ") {
		return fmt.Errorf("answer %q to %s", got, path)
	}
	return nil
}
