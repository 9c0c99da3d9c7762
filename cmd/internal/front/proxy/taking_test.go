package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
)

// script starts an upstream that calls each for every connection. Connections stay open
// until the test ends.
func script(t *testing.T, each func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() { each(conn) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return ln.Addr().String()
}

// awaitRequest reads the start of a request. Bytes sent earlier would not be a response.
func awaitRequest(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }

// readsNothing is an upstream that leaves everything in its socket buffer.
func readsNothing(conn net.Conn) { _ = conn.(*net.TCPConn).SetReadBuffer(4096) }

// givesNoWindow is an HTTP/2 upstream that reads frames but gives bodies no window.
func givesNoWindow(conn net.Conn) {
	if _, err := io.ReadFull(conn, make([]byte, len(wire.ClientPreface))); err != nil {
		return
	}
	framer := wire.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		if _, err := framer.ReadFrame(); err != nil {
			return
		}
	}
}

// stopsReading is an HTTP/2 upstream that stops reading after it has sent its settings.
func stopsReading(conn net.Conn) {
	framer := wire.NewFramer(conn, conn)
	_ = framer.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 30})
	_ = framer.WriteWindowUpdate(0, 1<<30)
	readsNothing(conn)
}

// TestUpstreamThatDoesNotTakeABody checks a request whose body the upstream does not read.
// Over every protocol, the request ends within the body bound and frees its resources.
func TestUpstreamThatDoesNotTakeABody(t *testing.T) {
	t.Parallel()
	const idle, uploads, bound = 3 * time.Second, 6, 4 // idle exceeds the second for which a busy machine may delay a client's sending.
	for name, c := range map[string]struct {
		scheme string
		each   func(net.Conn)
	}{
		"HTTP/1.1":                  {"http", readsNothing},
		"h2c":                       {"h2c", readsNothing},
		"h2c that gives no windows": {"h2c", givesNoWindow},
		"h2c that stops reading":    {"h2c", stopsReading},
	} {
		for from, protocols := range map[string]func(*http.Protocols){"HTTP/1.1": http1Only, "h2c": http2Only} {
			t.Run(name+" for a client of "+from, func(t *testing.T) {
				t.Parallel()
				p := before(t, UpstreamConfig{URL: parsed(t, c.scheme+"://"+script(t, c.each)), BodyIdle: idle},
					func(c *Config) { c.BodyIdle = idle })
				_, at := start(t, p, nil, ServerConfig{MaxRequests: bound})
				began := time.Now()
				var clients sync.WaitGroup
				for range uploads {
					clients.Go(func() {
						resp, err := httpClient(t, nil, protocols).Post("http://"+at+"/v1/product", "text/plain", endless{})
						if err != nil {
							return // The proxy may reset a connection while its body is unread.
						}
						resp.Body.Close()
						switch resp.StatusCode {
						case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusServiceUnavailable:
						default:
							t.Errorf("got unexpected status %d", resp.StatusCode)
						}
					})
				}
				clients.Wait()
				eventually(t, "every request to end", func() bool { return p.traffic.InFlight.Load() == 0 })
				if elapsed := time.Since(began); elapsed < idle || elapsed > idle+5*time.Second {
					t.Errorf("the uploads ended after %v, want about %v", elapsed, idle)
				}
			})
		}
	}
}

// TestSlowBodiesAreTaken checks that a slowly reading upstream and a pausing client do not
// end a request.
func TestSlowBodiesAreTaken(t *testing.T) {
	const idle = 500 * time.Millisecond
	for _, scheme := range []string{"http", "h2c"} {
		t.Run(scheme, func(t *testing.T) {
			p := before(t, UpstreamConfig{URL: parsed(t, scheme+"://"+slowReader(t, idle/5)), BodyIdle: idle},
				func(c *Config) { c.BodyIdle = 5 * time.Second })
			_, at := start(t, p, nil, ServerConfig{})
			resp, err := httpClient(t, nil, http1Only).Post("http://"+at+"/v1/product", "text/plain", strings.NewReader(strings.Repeat("x", 6<<20)))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != fmt.Sprint(6<<20) {
				t.Errorf("got response %d %q, want success", resp.StatusCode, body)
			}
		})
	}
}

// slowReader is an upstream that reads 1 MiB, pauses, and reads the rest.
func slowReader(t *testing.T, pause time.Duration) string {
	t.Helper()
	return bothProtocols(t, func(w http.ResponseWriter, r *http.Request) {
		total := 0
		for {
			n, err := io.CopyN(io.Discard, r.Body, 1<<20)
			if total += int(n); err != nil {
				break
			}
			<-time.After(pause)
		}
		fmt.Fprint(w, total)
	})
}

// bothProtocols starts an upstream with HTTP/1.1 and with HTTP/2 without TLS. It returns the
// upstream's address.
func bothProtocols(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	protocols := new(http.Protocols)
	http2(protocols)
	http1Only(protocols)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Protocols: protocols, Handler: handler}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(ln) }()
	t.Cleanup(func() { s.Close(); <-ended })
	return ln.Addr().String()
}

// TestEndlessInterimAnswers checks an upstream that sends 1xx responses forever. The
// upstream timeout ends the request, and the client receives a bounded number of responses.
func TestEndlessInterimAnswers(t *testing.T) {
	at := script(t, func(conn net.Conn) {
		awaitRequest(conn)
		for {
			if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"); err != nil {
				return
			}
		}
	})
	p := before(t, UpstreamConfig{URL: parsed(t, "http://"+at), Timeout: time.Second})
	_, front := start(t, p, nil, ServerConfig{})
	got := talk(t, front, "GET /v1/product HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if n := strings.Count(got, "HTTP/1.1 103 "); n != mostInterim || !strings.Contains(got, "HTTP/1.1 504 ") {
		t.Errorf("the client got %d interim responses, and at the end %q", n, got[max(0, len(got)-300):])
	}
}

// TestEndlessFieldsOfAnAnswer checks that a response with an endless header gives 502.
func TestEndlessFieldsOfAnAnswer(t *testing.T) {
	at := script(t, func(conn net.Conn) {
		awaitRequest(conn)
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for n := 0; err == nil; n++ {
			_, err = fmt.Fprintf(conn, "X-%d: %s\r\n", n, strings.Repeat("x", 1000))
		}
	})
	p := before(t, UpstreamConfig{URL: parsed(t, "http://"+at), Timeout: 5 * time.Second})
	_, front := start(t, p, nil, ServerConfig{})
	if got := talk(t, front, "GET /v1/product HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
		t.Errorf("got response %.200q, want status 502", got)
	}
}

// TestEndlessAnswerToAClientThatLeft checks that an endless response ends for the upstream
// when the client disconnects.
func TestEndlessAnswerToAClientThatLeft(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		t.Run(scheme, func(t *testing.T) {
			over := make(chan error, 1)
			p := before(t, UpstreamConfig{URL: parsed(t, scheme+"://"+streaming(t, over))})
			_, at := start(t, p, nil, ServerConfig{})
			resp, err := httpClient(t, nil, http1Only).Get("http://" + at + "/v1/product")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, 1<<20)); err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			eventually(t, "the request to end", func() bool { return p.traffic.InFlight.Load() == 0 })
			select {
			case err := <-over:
				if err == nil || errors.Is(err, io.EOF) {
					t.Errorf("the service's handler ended with %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the service's handler did not end")
			}
		})
	}
}

// streaming is an upstream whose responses never end on their own.
func streaming(t *testing.T, over chan<- error) string {
	t.Helper()
	return bothProtocols(t, func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.Copy(w, endless{})
		over <- err
	})
}
