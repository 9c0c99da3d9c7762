package client_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// tiny is a service that does little work for a request. The request's body is 1 KiB or nothing.
func tiny(p *peer) {
	buf, answer := make([]byte, 4096), []byte(plain)
	for {
		n, err := p.Read(buf)
		if err != nil {
			return
		}
		if bytes.HasPrefix(buf[:n], []byte("POST")) && !bytes.HasSuffix(buf[:n], []byte("aaaa")) {
			if _, err := p.Read(buf); err != nil {
				return
			}
		}
		if _, err := p.Write(answer); err != nil {
			return
		}
	}
}

func benchmarkHeader() http.Header {
	return http.Header{
		"Accept": {"*/*"}, "User-Agent": {"bench/1.0"}, "X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Host": {"h.example"},
		"X-Forwarded-Proto": {"http"}, "X-Request-Id": {"0123456789abcdef"},
	}
}

// BenchmarkDo compares requests over loopback TCP with net/http's Transport. Both run with
// several requests at a time, so that the time is the CPU's and not the scheduler's.
func BenchmarkDo(b *testing.B) {
	for _, body := range []string{"", strings.Repeat("a", 1024)} {
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		b.Run(method+"/client", func(b *testing.B) { benchmarkClient(b, method, body) })
		b.Run(method+"/transport", func(b *testing.B) { benchmarkTransport(b, method, body) })
	}
}

func benchmarkClient(b *testing.B, method, body string) {
	b.Helper()
	c := serve(b, "tcp", tiny).client(b, func(c *client.Config) { c.MaxIdle, c.Timeout = 64, time.Minute })
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	parallel(b, func() func() error {
		r, a := get(), client.Answer{}
		r.Header, r.Method, r.Length = list(benchmarkHeader()), method, int64(len(body))
		return func() error {
			if body != "" {
				r.Body = onlyReader{strings.NewReader(body)}
			}
			if err := c.Do(ctx, r, &a); err != nil {
				return err
			}
			defer a.Close()
			if body := a.Buffered(); len(body) != 5 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
	})
}

func benchmarkTransport(b *testing.B, method, body string) {
	b.Helper()
	s := serve(b, "tcp", tiny)
	transport := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: time.Minute,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
	}
	defer transport.CloseIdleConnections()
	parallel(b, func() func() error {
		r, err := http.NewRequestWithContext(b.Context(), method, "http://service.example/", nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header, r.ContentLength = benchmarkHeader(), int64(len(body))
		return func() error {
			if body != "" {
				r.Body = io.NopCloser(onlyReader{strings.NewReader(body)})
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}
	})
}

// parallel runs the functions that work returns, eight for each core.
func parallel(b *testing.B, work func() func() error) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		do := work()
		for pb.Next() {
			if err := do(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
