package stages

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/front/proxy"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/middleware/httplimit"
)

// kinds are the content types of streams.
var kinds = map[string]string{"/events": "text/event-stream", "/call": "application/grpc"}

// part is a part of a stream: a gRPC message.
const part = "\x00\x00\x00\x00\x06a part"

// service is the service behind the fronts.
func service(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/panic":
		panic(http.ErrAbortHandler)
	case "/events", "/call", "/stream":
		if kind := kinds[r.URL.Path]; kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		for range 3 {
			fmt.Fprint(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	case "/upload":
		_, _ = io.Copy(io.Discard, r.Body)
	case "/upgrade":
		upgrade(w)
	}
}

// upgrade turns the connection into an echo until the client leaves.
func upgrade(w http.ResponseWriter) {
	conn, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(settled))
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(conn, in)
}

// ask sends a request, and reads the answer as far as it arrives.
func ask(ctx context.Context, client *http.Client, method, address string, body io.Reader) {
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		panic(err)
	}
	upgrades := r.URL.Path == "/upgrade"
	if upgrades {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "echo")
	}
	answer, err := client.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if conn, ok := answer.Body.(io.ReadWriter); ok && upgrades && answer.StatusCode == http.StatusSwitchingProtocols {
		_, _ = io.WriteString(conn, "x")
		_, _ = conn.Read(make([]byte, 1))
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
}

// slowly is a body that arrives in parts.
func slowly() io.Reader {
	in, out := io.Pipe()
	go func() {
		for range 3 {
			<-time.After(time.Millisecond)
			if _, err := io.WriteString(out, "a part"); err != nil {
				return
			}
		}
		_ = out.Close()
	}()
	return in
}

func protocols(version int) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(version == 1)
	p.SetUnencryptedHTTP2(version == 2)
	return p
}

// serve starts a front, and gives its address.
func serve(t *testing.T, c *crowd, front string, version int) string {
	t.Helper()
	if front == "middleware" {
		s := httptest.NewUnstartedServer(httplimit.New(c.guard, httplimit.Options{})(http.HandlerFunc(service)))
		s.Config.Protocols, s.Config.ErrorLog = protocols(version), slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.Start()
		t.Cleanup(s.Close)
		return s.URL
	}
	behind := httptest.NewServer(http.HandlerFunc(service))
	t.Cleanup(behind.Close)
	u, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := proxy.NewUpstream(proxy.UpstreamConfig{URL: u})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.CloseIdleConnections)
	log := slog.New(slog.DiscardHandler)
	p, err := proxy.New(proxy.Config{
		Guard: c.guard, Upstream: u, Transport: upstream, Traffic: new(report.Traffic), BodyIdle: settled, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := proxy.NewServer(p, proxy.ServerConfig{Log: log})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), settled)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// TestSlotsOfHTTP: at most three requests are in flight, and every slot is released: after
// refusals, panics, resets, clients that leave while they wait, upgrades, streams and reloads.
func TestSlotsOfHTTP(t *testing.T) { slotsOfHTTP(t, inTest) }

func slotsOfHTTP(t *testing.T, requests int) {
	t.Helper()
	for _, front := range []string{"middleware", "proxy"} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, HTTP/%d", front, version), func(t *testing.T) {
				c := newCrowd(t)
				at := serve(t, c, front, version)
				transport := &http.Transport{Protocols: protocols(version), MaxIdleConnsPerHost: callers}
				client := &http.Client{Transport: transport}
				defer transport.CloseIdleConnections()
				var ways []func(context.Context)
				for _, path := range []string{"/", "/panic", "/stream", "/events", "/call", "/upgrade"} {
					if path != "/upgrade" || version == 1 {
						ways = append(ways, func(ctx context.Context) { ask(ctx, client, http.MethodGet, at+path, nil) })
					}
				}
				ways = append(ways, func(ctx context.Context) { ask(ctx, client, http.MethodPost, at+"/upload", slowly()) })
				c.run(t, requests, ways)
				if c.slots.streams.Load() == 0 {
					t.Error("the stage was told of no stream")
				}
			})
		}
	}
}
