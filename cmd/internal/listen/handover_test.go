package listen

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/front/proxy"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/store/memory"
)

// serveProxy runs in its own process: a proxy on an inherited socket that drains on SIGTERM.
func serveProxy() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := proxyUntil(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func proxyUntil(ctx context.Context) error {
	at, err := url.Parse(os.Getenv("HEADGATE_TEST_UPSTREAM"))
	if err != nil {
		return err
	}
	upstream, err := proxy.NewUpstream(proxy.UpstreamConfig{URL: at})
	if err != nil {
		return err
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		return err
	}
	g, err := guard.New(guard.Config{Store: store})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	p, err := proxy.New(proxy.Config{Guard: g, Upstream: upstream.URL, Transport: upstream, Traffic: new(report.Traffic), Log: log})
	if err != nil {
		return err
	}
	ln, err := Open(ctx, Config{Address: "systemd:web", MaxConnections: 100})
	if err != nil {
		return err
	}
	s := proxy.NewServer(p, proxy.ServerConfig{ReadHeader: time.Second, Idle: time.Minute, RequestID: "X-Request-Id", Log: log})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	fmt.Println("ready")
	<-ctx.Done()
	draining, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Drain(draining); err != nil {
		return err
	}
	return <-served
}

// process is a proxy process with an inherited socket.
type process struct {
	cmd  *exec.Cmd
	said io.Reader
}

func startProxy(t *testing.T, holder net.Listener, upstream string) *process {
	t.Helper()
	socket, err := holder.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	cmd := role(t, "", socket, "HEADGATE_TEST_ROLE=proxy", "HEADGATE_TEST_UPSTREAM="+upstream)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process printed %q, %v", line, err)
	}
	return &process{cmd, said}
}

// end stops the process and waits for its end.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
}

// TestHandOverBetweenProcesses checks an update in which each process takes over the socket
// from its predecessor, which drains. Clients with persistent connections and clients with
// a connection per request see no failure.
func TestHandOverBetweenProcesses(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer upstream.Close()
	holder, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	serving := startProxy(t, holder, upstream.URL)
	var clients sync.WaitGroup
	var requests, connections atomic.Int64
	stop := make(chan struct{})
	for i := range 4 {
		dialer := &net.Dialer{}
		transport := &http.Transport{DisableKeepAlives: i == 0, DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			connections.Add(1)
			return dialer.DialContext(ctx, network, at)
		}}
		clients.Go(func() {
			defer transport.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := echo(t.Context(), transport, "http://"+holder.Addr().String(), strconv.Itoa(n)); err != nil {
					t.Errorf("request %d of client %d: %v", n, i, err)
					return
				}
				requests.Add(1)
			}
		})
	}
	for range 3 {
		seen := requests.Load()
		waits(t, "traffic", func() bool { return requests.Load() >= seen+200 || t.Failed() })
		next := startProxy(t, holder, upstream.URL)
		serving.end(t)
		serving = next
	}
	seen := requests.Load()
	waits(t, "traffic after the last", func() bool { return requests.Load() >= seen+200 || t.Failed() })
	close(stop)
	clients.Wait()
	serving.end(t)
	t.Logf("got %d requests over %d connections", requests.Load(), connections.Load())
}

// echo sends a POST request, which a transport does not retry, and checks the response.
func echo(ctx context.Context, transport http.RoundTripper, url, text string) error {
	r, w := io.Pipe()
	go func() { _, err := io.WriteString(w, text); w.CloseWithError(err) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, r)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != text || resp.Header.Get("X-Request-Id") == "" {
		return fmt.Errorf("got response %d %q: %w", resp.StatusCode, body, err)
	}
	return nil
}
