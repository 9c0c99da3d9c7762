package proxy

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/report"
)

// departed is an upstream in memory that records when a request arrives.
type departed struct{ at time.Time }

func (d *departed) RoundTrip(*http.Request) (*http.Response, error) {
	d.at = time.Now()
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}}, nil
}

// waiting returns a store that schedules a departure after d.
func waiting(d time.Duration) *scripted {
	return &scripted{decision: headgate.Decision{
		Verdict: headgate.Wait, Reason: headgate.Scheduled, RetryAfter: d, Receipt: headgate.Receipt{Nonce: 7},
	}}
}

func TestWaitUntilDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := new(departed)
		p := newProxy(t, waiting(1500*time.Millisecond), "http://upstream", upstream)
		began := time.Now()
		go func() {
			<-time.After(time.Second)
			if n := p.traffic.Waiting.Load(); n != 1 {
				t.Errorf("%d requests wait after 1 s, want 1", n)
			}
		}()
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody))
		if got := upstream.at.Sub(began); got != 1500*time.Millisecond || w.Code != http.StatusOK {
			t.Errorf("forwarded after %v with status %d, want after 1.5s with 200", got, w.Code)
		}
		if n := p.traffic.Waiting.Load(); n != 0 {
			t.Errorf("%d requests wait at the end, want 0", n)
		}
	})
}

func TestClientLeavesWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream, store := new(departed), waiting(time.Hour)
		p := newProxy(t, store, "http://upstream", upstream)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		abandoned(t, func() {
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/product", http.NoBody))
		})
		if got := time.Since(began); got != time.Second || !upstream.at.IsZero() {
			t.Errorf("ended after %v, forwarded at %v, want after 1s and never", got, upstream.at)
		}
		if len(store.returned) != 1 || store.returned[0].Nonce != 7 {
			t.Errorf("returned receipts %v, want the only receipt", store.returned)
		}
		if n := p.traffic.Answers(report.ClassCanceled); n != 1 {
			t.Errorf("%d canceled requests were counted, want 1", n)
		}
	})
}

// TestStalledUpload checks that a stalled upload ends with 408 and counts as the client's
// fault.
func TestStalledUpload(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }),
		func(c *Config) { c.BodyIdle = 50 * time.Millisecond })
	stalled, writer := io.Pipe()
	defer writer.Close()
	// Without an answer, the client waits for the end of this body.
	defer time.AfterFunc(10*time.Second, func() { writer.Close() }).Stop()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/product", stalled)
	resp, _ := f.do(t, req)
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %d, want 408", resp.StatusCode)
	}
	if n := f.traffic.UpstreamFailures(report.UpstreamTimeout); n != 0 {
		t.Errorf("%d upstream timeouts were counted, want 0", n)
	}
}

// canceled is a body whose request is canceled before Read returns, as a server does.
type canceled struct{ cancel context.CancelFunc }

func (c canceled) Read([]byte) (int, error) {
	c.cancel()
	<-time.After(20 * time.Millisecond) // The upstream's client sees the cancellation first.
	return 0, os.ErrDeadlineExceeded
}

// TestCancellationBeforeStalledRead checks that a stalled upload ends with 408 also when its
// request is canceled first.
func TestCancellationBeforeStalledRead(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	for _, length := range []int64{-1, 5} {
		ctx, cancel := context.WithCancel(t.Context())
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/product", canceled{cancel})
		req.ContentLength = length
		w := httptest.NewRecorder()
		f.ServeHTTP(w, req)
		if w.Code != http.StatusRequestTimeout {
			t.Errorf("with length %d: status %d, want 408", length, w.Code)
		}
	}
}

// TestSlowUploadAndAnswer checks that a slow but steady upload is not bounded in total, and
// neither is the response.
func TestSlowUploadAndAnswer(t *testing.T) {
	const idle, parts = 400 * time.Millisecond, 6
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-time.After(idle + idle/4) // The response may take longer than the body bound.
		w.WriteHeader(http.StatusNoContent)
	}), func(c *Config) { c.BodyIdle = idle })
	reader, writer := io.Pipe()
	go func() {
		for range parts {
			<-time.After(idle / 4)
			_, _ = writer.Write([]byte(strings.Repeat("x", 100)))
		}
		writer.Close()
	}()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/product", reader)
	if resp, _ := f.do(t, req); resp.StatusCode != http.StatusNoContent {
		t.Errorf("status %d, want 204", resp.StatusCode)
	}
}

// TestUnreadAnswer checks that a client that reads nothing cannot keep a response and its
// upstream open forever.
func TestUnreadAnswer(t *testing.T) {
	for _, protocol := range []string{"HTTP/1", "HTTP/2"} {
		t.Run(protocol, func(t *testing.T) {
			f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				chunk := make([]byte, 1<<20)
				for range 64 {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			}), func(c *Config) { c.BodyIdle = 100 * time.Millisecond })
			if protocol == "HTTP/2" {
				protocols := new(http.Protocols)
				protocols.SetUnencryptedHTTP2(true)
				transport := &http.Transport{Protocols: protocols}
				f.client.Transport = transport
				t.Cleanup(transport.CloseIdleConnections)
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/v1/product", http.NoBody)
			resp, err := f.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			eventually(t, "the proxy to give up", func() bool { return f.traffic.InFlight.Load() == 0 })
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Error("the unread response arrived completely")
			}
		})
	}
}

// abandoned runs a handler that must abort with http.ErrAbortHandler.
func abandoned(t *testing.T, handle func()) {
	t.Helper()
	defer func() {
		if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // because net/http compares it so.
			t.Errorf("the handler ended with %v, want a panic with http.ErrAbortHandler", got)
		}
	}()
	handle()
}

// TestDrain checks that requests in flight end before the server, and that those that take
// too long are aborted.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name    string
		patient time.Duration
		want    string
	}{{"ends", 5 * time.Second, ""}, {"is aborted", 10 * time.Millisecond, "requests aborted at shutdown: 1"}} {
		t.Run(c.name, func(t *testing.T) {
			reached := make(chan struct{})
			f := serve(t, allowed(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(reached)
				if c.want != "" {
					<-r.Context().Done()
					return
				}
				<-time.After(100 * time.Millisecond)
			}))
			s := NewServer(f.Proxy, ServerConfig{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
			front := httptest.NewUnstartedServer(nil)
			go func() { _ = s.Serve(front.Listener) }()
			answered := make(chan int, 1)
			go func() {
				defer close(answered)
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+front.Listener.Addr().String()+"/v1/product", http.NoBody)
				if resp, err := f.client.Do(req); err == nil {
					resp.Body.Close()
					answered <- resp.StatusCode
				}
			}()
			<-reached
			ctx, cancel := context.WithTimeout(t.Context(), c.patient)
			defer cancel()
			err := s.Drain(ctx)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("Drain returned %v, want %q", err, c.want)
			}
			if status, ok := <-answered; ok != (c.want == "") || ok && status != http.StatusOK {
				t.Errorf("request ended with error %v, status %d", ok, status)
			}
		})
	}
}

// TestDrainOpenConnections checks that a persistent HTTP/2 connection does not delay the
// shutdown, and that an upgraded connection that stays open does not either.
func TestDrainOpenConnections(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, rw, _ := http.NewResponseController(w).Hijack()
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		_, _ = io.Copy(io.Discard, rw)
	}))
	s := NewServer(f.Proxy, ServerConfig{Log: slog.New(slog.DiscardHandler)})
	front := httptest.NewUnstartedServer(nil)
	go func() { _ = s.Serve(front.Listener) }()
	at := front.Listener.Addr().String()

	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/v1/product", http.NoBody)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /v1/product HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if line, _ := bufio.NewReader(conn).ReadString('\n'); line != "HTTP/1.1 101 Switching Protocols\r\n" {
		t.Fatalf("the upgrade got response %q", line)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	err = s.Drain(ctx)
	if err == nil || !strings.Contains(err.Error(), "requests aborted at shutdown: 1") {
		t.Errorf("Drain returned %v, want an error about the aborted upgraded connection", err)
	}
	if elapsed := time.Since(began); elapsed > 2*time.Second || f.traffic.InFlight.Load() != 0 {
		t.Errorf("Drain took %v and left %d requests in flight", elapsed, f.traffic.InFlight.Load())
	}
}
