package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestUpstreamSchemes checks that the service is reachable with every configurable scheme.
func TestUpstreamSchemes(t *testing.T) {
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %s %v", r.Proto, r.Host, r.TLS != nil)
	})
	served, trusting := certificate(t)
	behind := func(ln net.Listener, config *tls.Config) {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
		s := &http.Server{Handler: upstream, Protocols: protocols, TLSConfig: config, ReadHeaderTimeout: time.Second}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if config != nil {
				_ = s.ServeTLS(ln, "", "")
			} else {
				_ = s.Serve(ln)
			}
		}()
		t.Cleanup(func() { s.Close(); <-ended })
	}
	on := func(network, address string) net.Listener {
		ln, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	plain, secure := on("tcp", "127.0.0.1:0"), on("tcp", "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "x.sock")
	behind(plain, nil)
	behind(secure, served)
	behind(on("unix", path), nil)
	for address, want := range map[string]string{
		"http://" + plain.Addr().String():   "HTTP/1.1 api.example.com false",
		"h2c://" + plain.Addr().String():    "HTTP/2.0 api.example.com false",
		"https://" + secure.Addr().String(): "HTTP/2.0 api.example.com true",
		"unix:" + path:                      "HTTP/1.1 api.example.com false",
	} {
		t.Run(address, func(t *testing.T) {
			p := before(t, UpstreamConfig{
				URL: parsed(t, address), Timeout: 5 * time.Second,
				TLS: func() *tls.Config { return &tls.Config{RootCAs: trusting.RootCAs, MinVersion: tls.VersionTLS12} },
			})
			_, at := start(t, p, nil, ServerConfig{})
			f := &front{url: "http://" + at, client: httpClient(t, nil, http1Only)}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/product", strings.NewReader("x"))
			req.Host = "api.example.com"
			if resp, body := f.do(t, req); resp.StatusCode != http.StatusOK || body != want {
				t.Errorf("got response %d %q, want %q", resp.StatusCode, body, want)
			}
		})
	}
}

// TestUpstreamWithoutTLS checks an https upstream that answers without TLS. The log names
// the cause, and the response does not.
func TestUpstreamWithoutTLS(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(fine))
	t.Cleanup(behind.Close)
	out := new(logs.Text)
	address := parsed(t, strings.Replace(behind.URL, "http:", "https:", 1))
	p := before(t, UpstreamConfig{URL: address}, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(out, nil)) })
	_, at := start(t, p, nil, ServerConfig{})
	f := &front{url: "http://" + at, client: httpClient(t, nil, http1Only)}
	const advice = "the service answers without TLS: write http://"
	if resp, body := f.get(t, "/v1/product"); resp.StatusCode != http.StatusBadGateway || strings.Contains(body, "TLS") {
		t.Errorf("got response %d %q, want 502 without the cause", resp.StatusCode, body)
	}
	if !strings.Contains(out.String(), advice) {
		t.Errorf("the log does not contain %q: %s", advice, out)
	}
}

// TestUpstreamSilentAtTheHandshake checks that the log also names a service that stays
// silent during the handshake. Some services without TLS wait for the client.
func TestUpstreamSilentAtTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := dialTLS(func(context.Context, string, string) (net.Conn, error) {
			conn, service := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, service) }()
			return conn, nil
		}, nil)(t.Context(), "tcp", "service:443")
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not answer the TLS handshake") {
			t.Errorf("the handshake failed with %v, want advice about TLS", err)
		}
	})
}

// TestUpstreamTLS checks that each TLS connection uses the newest configuration. A failed
// handshake is logged once, and the client does not learn its cause.
func TestUpstreamTLS(t *testing.T) {
	behind := httptest.NewUnstartedServer(http.HandlerFunc(fine))
	behind.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	behind.StartTLS()
	t.Cleanup(behind.Close)
	trusting := behind.Client().Transport.(*http.Transport).TLSClientConfig
	newest := &tls.Config{MinVersion: tls.VersionTLS12}
	out := new(logs.Text)
	p := before(t, UpstreamConfig{
		URL: parsed(t, behind.URL), TLS: func() *tls.Config { return newest },
	}, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(out, nil)) })
	_, at := start(t, p, nil, ServerConfig{})
	f := &front{url: "http://" + at, client: httpClient(t, nil, http1Only)}
	for range 2 {
		if resp, body := f.get(t, "/v1/product"); resp.StatusCode != http.StatusBadGateway || strings.Contains(body, "x509") {
			t.Errorf("with an unknown authority: got %d %q, want 502", resp.StatusCode, body)
		}
	}
	if n := strings.Count(out.String(), "x509: "); n != 1 {
		t.Errorf("got %d log lines, want 1: %s", n, out)
	}
	newest = &tls.Config{RootCAs: trusting.RootCAs, MinVersion: tls.VersionTLS12}
	if resp, body := f.get(t, "/v1/product"); resp.StatusCode != http.StatusOK {
		t.Errorf("with the known authority: got %d %q, want 200", resp.StatusCode, body)
	}
	if newest.NextProtos != nil || newest.ServerName != "" {
		t.Error("the shared configuration was changed")
	}
	newest = &tls.Config{RootCAs: trusting.RootCAs, ServerName: "elsewhere.example.org", MinVersion: tls.VersionTLS12}
	f.client.CloseIdleConnections()
	again := before(t, UpstreamConfig{URL: parsed(t, behind.URL), TLS: func() *tls.Config { return newest }})
	_, at = start(t, again, nil, ServerConfig{})
	f.url = "http://" + at
	if resp, _ := f.get(t, "/v1/product"); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("with a server name that the certificate lacks: got status %d", resp.StatusCode)
	}
}

func TestNewUpstreamRefuses(t *testing.T) {
	for address, want := range map[string]string{
		"ftp://127.0.0.1":       "write http, https, h2c or unix",
		"http:///x":             "has no host",
		"https:127.0.0.1":       "has no host",
		"unix:run/x.sock":       "has no absolute path",
		"unix://host/x.sock":    "has no absolute path",
		"http2://u:secret@host": "unknown scheme",
	} {
		if _, err := NewUpstream(UpstreamConfig{URL: parsed(t, address)}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("NewUpstream(%s) returned error %v, want %q", address, err, want)
		}
	}
	if _, err := NewUpstream(UpstreamConfig{}); err == nil {
		t.Error("NewUpstream accepts a missing URL")
	}
}

// TestGRPC checks that unary calls, streams and trailers of gRPC pass.
func TestGRPC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	checks := health.NewServer()
	behind := grpc.NewServer(grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		sent, _ := metadata.FromIncomingContext(ctx)
		_ = grpc.SetTrailer(ctx, metadata.Pairs("x-sum", strings.Join(sent.Get("x-request"), "")))
		return next(ctx, req)
	}))
	grpc_health_v1.RegisterHealthServer(behind, checks)
	go func() { _ = behind.Serve(ln) }()
	t.Cleanup(behind.Stop)
	p := before(t, UpstreamConfig{URL: parsed(t, "h2c://"+ln.Addr().String()), Timeout: 5 * time.Second})
	_, at := start(t, p, nil, ServerConfig{})

	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	caller := grpc_health_v1.NewHealthClient(conn)

	var trailer metadata.MD
	outgoing := metadata.AppendToOutgoingContext(ctx, "x-request", "42")
	answer, err := caller.Check(outgoing, &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&trailer))
	if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING || strings.Join(trailer.Get("x-sum"), "") != "42" {
		t.Errorf("a call returned %v, trailer %v, error %v", answer, trailer, err)
	}
	// An error response has only trailers.
	_, err = caller.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "none"})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "unknown service") {
		t.Errorf("a call to an unknown service returned %v, want NOT_FOUND", err)
	}
	// Each message of a stream arrives as soon as it is sent.
	watching, stop := context.WithCancel(ctx)
	stream, err := caller.Watch(watching, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{
		grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVING,
	} {
		checks.SetServingStatus("", want)
		got, err := stream.Recv()
		if err != nil || got.GetStatus() != want {
			t.Errorf("the stream returned %v, %v, want %v", got, err, want)
		}
	}
	stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("a canceled stream ended with %v, want CANCELED", err)
	}
	eventually(t, "the canceled stream to end", func() bool { return p.traffic.InFlight.Load() == 0 })
}

// TestServerSentEvents checks that events of a response of unknown length reach the client
// one by one.
func TestServerSentEvents(t *testing.T) {
	next := make(chan struct{})
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}))
	_, at := start(t, p, nil, ServerConfig{})
	for _, protocols := range []func(*http.Protocols){http1Only, http2} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/v1/product", http.NoBody)
		resp, err := httpClient(t, nil, protocols).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		events := bufio.NewReader(resp.Body)
		for i := range 3 {
			if line, err := events.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("got event %d: %q, %v", i, line, err)
			}
			_, _ = events.ReadString('\n')
			next <- struct{}{}
		}
		resp.Body.Close()
	}
}

// TestExpectContinue checks that the upstream answers Expect: 100-continue.
func TestExpectContinue(t *testing.T) {
	const head = "POST /v1/product HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	go answerLate(mute)
	for _, c := range []struct {
		name     string
		p        *Proxy
		informed bool
		want     string
	}{
		{"welcome", beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })), true, "200"},
		{"refused", beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })), false, "403"},
		{"an upstream without Expect support", before(t, UpstreamConfig{URL: parsed(t, "http://"+mute.Addr().String())}), true, "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, at := start(t, c.p, nil, ServerConfig{})
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			fmt.Fprint(conn, head)
			answers := bufio.NewReader(conn)
			line, err := answers.ReadString('\n')
			if informed := strings.HasPrefix(line, "HTTP/1.1 100 "); informed != c.informed || err != nil {
				t.Fatalf("the first response is %q, %v", line, err)
			}
			if c.informed {
				fmt.Fprint(conn, "ping")
				_, _ = answers.ReadString('\n') // The informational response ends here.
				line, _ = answers.ReadString('\n')
			}
			if !strings.HasPrefix(line, "HTTP/1.1 "+c.want) {
				t.Errorf("got response %q, want %s", line, c.want)
			}
			if rest, err := io.ReadAll(answers); err != nil || c.informed && !strings.HasSuffix(string(rest), "ping") {
				t.Errorf("the response is %q, %v", rest, err)
			}
		})
	}
}

// answerLate is a server that responds after it has received the complete body.
func answerLate(ln net.Listener) {
	conn, err := ln.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	body, _ := io.ReadAll(req.Body)
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

func TestWebSocket(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat"}, CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		for {
			kind, message, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			if err := conn.Write(r.Context(), kind, message); err != nil {
				return
			}
		}
	}))
	served, trusting := certificate(t)
	for name, c := range map[string]ServerConfig{"ws": {RequestID: "X-Request-Id"}, "wss": {TLS: served}} {
		t.Run(name, func(t *testing.T) {
			_, at := start(t, p, nil, c)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			conn, resp, err := websocket.Dial(ctx, name+"://"+at+"/v1/product", &websocket.DialOptions{ //nolint:bodyclose // because Dial does
				HTTPClient: httpClient(t, trusting, http1Only), Subprotocols: []string{"chat"}, CompressionMode: websocket.CompressionContextTakeover,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			if conn.Subprotocol() != "chat" || (resp.Header.Get("X-Request-Id") != "") != (c.RequestID != "") {
				t.Errorf("upgrade to %q returned %v", conn.Subprotocol(), resp.Header)
			}
			for _, message := range []string{"ping", strings.Repeat("long ", 5000), ""} {
				if err := conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
					t.Fatal(err)
				}
				if _, got, err := conn.Read(ctx); err != nil || string(got) != message {
					t.Fatalf("got %d bytes back, want %d: %v", len(got), len(message), err)
				}
			}
			if err := conn.Close(websocket.StatusNormalClosure, "done"); err != nil {
				t.Errorf("closing returned %v", err)
			}
			eventually(t, "the connection to end", func() bool { return p.traffic.InFlight.Load() == 0 })
		})
	}
}

func TestRefuseTunnels(t *testing.T) {
	for _, c := range []struct {
		upgrades []string
		kept     bool
	}{
		{[]string{"websocket"}, true},
		{[]string{"WebSocket"}, true},
		{[]string{"SPDY/3.1"}, true}, // kubectl sends this.
		{[]string{"tcp"}, true},      // Docker sends this.
		{[]string{"foo/2, bar"}, true},
		{[]string{"h2c"}, false},
		{[]string{"H2C"}, false},
		{[]string{"h2"}, false},
		{[]string{"HTTP/2.0"}, false},
		{[]string{"http/1.1"}, false},
		{[]string{"TLS/1.2"}, false},
		{[]string{"TLS/1.0, HTTP/1.1"}, false},
		{[]string{"websocket,\th2c"}, false},
		{[]string{"websocket", "h2c"}, false},
		{[]string{"websocket", "websocket"}, false},
		{[]string{""}, false},
		{[]string{"/2.0"}, false},
		{[]string{"\vh2c"}, false}, // Some servers trim more bytes than the standard allows.
		{[]string{"websocket;h2c"}, false},
	} {
		l := list(http.Header{"Upgrade": c.upgrades, "Http2-Settings": {"AAMAAABkAAQAAP__"}})
		refuseTunnels(l)
		if l.Has("Upgrade") != c.kept || l.Has("Http2-Settings") {
			t.Errorf("with Upgrade %q the header %v remains", c.upgrades, l.Header())
		}
	}
}

// FuzzRefuseTunnels checks that no spelling of a protocol that carries requests passes.
func FuzzRefuseTunnels(f *testing.F) {
	for _, seed := range []string{"websocket", "h2c", "a, H2C", "h2c/1", " http/2 ", ",,h2c", "\th2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, upgrade string) {
		l := list(http.Header{"Upgrade": {upgrade}})
		refuseTunnels(l)
		for option := range strings.SplitSeq(l.Get("Upgrade"), ",") {
			name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(option)), "/")
			switch name {
			case "h2c", "h2", "h3", "http", "tls":
				t.Errorf("Upgrade %q became %q", upgrade, l.Lines("Upgrade"))
			}
		}
	})
}

// TestUpstreamSocketGone checks that a missing unix socket gives the usual 502.
func TestUpstreamSocketGone(t *testing.T) {
	p := before(t, UpstreamConfig{URL: &url.URL{Scheme: "unix", Path: filepath.Join(t.TempDir(), "none.sock")}})
	_, at := start(t, p, nil, ServerConfig{})
	f := &front{url: "http://" + at, client: httpClient(t, nil, http1Only)}
	if resp, body := f.get(t, "/v1/product"); resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, "does not accept connections") {
		t.Errorf("got response %d %q", resp.StatusCode, body)
	}
}

// statusTransport responds to each request with a status, as net/http reads it.
type statusTransport int

func (status statusTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(status), ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Body: http.NoBody}, nil
}

// TestUpstreamStatusOutOfRange checks that a status that cannot be written gives 502. Go
// accepts 000 and 099 from HTTP/1, and any integer from HTTP/2.
func TestUpstreamStatusOutOfRange(t *testing.T) {
	for status, want := range map[int]int{-200: 502, 0: 502, 99: 502, 1000: 502, 200: 200, 599: 599, 999: 999} {
		p := newProxy(t, allowed(), "http://a", statusTransport(status))
		_, at := start(t, p, nil, ServerConfig{})
		for name, protocols := range map[string]func(*http.Protocols){"HTTP/1.1": http1Only, "HTTP/2": http2Only} {
			resp, err := httpClient(t, nil, protocols).Get("http://" + at + "/v1/product")
			if err != nil {
				t.Errorf("status %d over %s: %v", status, name, err)
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("upstream status %d over %s gave status %d, want %d", status, name, resp.StatusCode, want)
			}
		}
		if got := p.traffic.UpstreamFailures(report.UpstreamOther); want == 502 && got != 2 {
			t.Errorf("upstream status %d counted as %d upstream failures, want 2", status, got)
		}
	}
}
