package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/http1/client"
)

// tiny is a service that answers each read with one plain answer.
func tiny(p *peer) {
	buf, answer := make([]byte, 4096), []byte(plain)
	for {
		if _, err := p.Read(buf); err != nil {
			return
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
	b.Run("client", func(b *testing.B) {
		c := serve(b, "tcp", tiny).client(b, func(c *client.Config) { c.MaxIdle, c.Timeout = 64, time.Minute })
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		parallel(b, func() func() error {
			r, a := get(), client.Answer{Header: http.Header{}}
			r.Header = benchmarkHeader()
			return func() error {
				clear(a.Header)
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
	})
	b.Run("transport", func(b *testing.B) {
		s := serve(b, "tcp", tiny)
		transport := &http.Transport{
			DisableCompression: true, MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: time.Minute,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
		}
		defer transport.CloseIdleConnections()
		parallel(b, func() func() error {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://service.example/", nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Header = benchmarkHeader()
			return func() error {
				resp, err := transport.RoundTrip(r)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return err
			}
		})
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
