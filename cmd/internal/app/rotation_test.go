package app

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/internal/config"
)

// rotating is an instance whose caller a has tokens that a test changes.
type rotating struct {
	instance *Instance
	config   atomic.Pointer[config.Config]
	file     string // the token of the clients
}

// settings gives the configuration with tokens of the caller.
func (r *rotating) settings(t *testing.T, tokens ...string) *config.Config {
	t.Helper()
	var digests []string
	for _, token := range tokens {
		digests = append(digests, fmt.Sprintf("%q", digest(token)))
	}
	return serverConfig(t, fmt.Sprintf(`server:
  grpc: {address: '127.0.0.1:0', auth: token}
  http: off
  resp: {address: '127.0.0.1:0', auth: token}
  callers: [{name: a, tokens: [%s], scopes: [decide]}]
rules: [{name: many, key: [all], limits: [1000000000/1h]}]`, strings.Join(digests, ", ")))
}

// use reloads with tokens.
func (r *rotating) use(t *testing.T, tokens ...string) {
	t.Helper()
	r.config.Store(r.settings(t, tokens...))
	if err := r.instance.Reload(); err != nil {
		t.Fatal(err)
	}
}

// hand gives the clients a token.
func (r *rotating) hand(t *testing.T, token string) {
	t.Helper()
	next := r.file + ".next"
	if err := os.WriteFile(next, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, r.file); err != nil {
		t.Fatal(err)
	}
}

func startRotating(t *testing.T) *rotating {
	t.Helper()
	r := &rotating{file: filepath.Join(t.TempDir(), "token")}
	r.hand(t, "one")
	o := serverOptions(t, "")
	o.Config = r.settings(t, "one")
	o.Load = func() (*config.Config, error) { return r.config.Load(), nil }
	r.instance = startServer(t, o)
	eventually(t, "the health", func() bool { return serving(t, r.instance.Addresses().GRPC, "ratelimit") })
	return r
}

// TestRotation: tokens rotate under load without a refused call.
func TestRotation(t *testing.T) {
	r := startRotating(t)
	k, err := client.New(client.Config{Servers: []string{r.instance.Addresses().GRPC}, TokenFile: r.file, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	stop := make(chan struct{})
	var calls atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := k.Decide(t.Context(), &client.Request{Path: "/"})
				if err != nil || a.Local || a.Verdict != headgate.Allow {
					t.Errorf("a call gets %+v, %v", a, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	former := "one"
	for _, token := range []string{"two", "three", "four"} {
		more := func() {
			before := calls.Load()
			eventually(t, "calls", func() bool { return calls.Load() > before+200 || t.Failed() })
		}
		more()
		r.use(t, former, token)
		r.hand(t, token)
		more()
		r.use(t, token)
		more()
		former = token
	}
	close(stop)
	callers.Wait()
	if got := k.Stats(); got.Fallbacks != 0 || got.Switches < 3 {
		t.Errorf("got %+v, want no fallback and a stream for each token", got)
	}
}

// TestNamesInAuth: the token decides who a client of the Redis protocol is. The name that clients send with a password alone is
// none, and a wrong name is told.
func TestNamesInAuth(t *testing.T) {
	at := startRotating(t).instance.Addresses().RESP
	for command, want := range map[string]string{
		"AUTH one": "+OK", "AUTH a one": "+OK", "AUTH default one": "+OK", "HELLO 3 AUTH default one": "%7",
		"AUTH b one":           "-WRONGPASS the token is not that of the caller in AUTH",
		"HELLO 2 AUTH b one":   "-WRONGPASS the token is not that of the caller in AUTH",
		"AUTH default another": "-WRONGPASS the token or certificate belongs to no caller",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprintf(conn, "%s\r\n", command)
		if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, want) {
			t.Errorf("%s answers %q, %v, want %q", command, line, err, want)
		}
		conn.Close()
	}
	cli := exec.CommandContext(t.Context(), "redis-cli", "--no-auth-warning", "-u", "redis://:one@"+at, "PING")
	if text, err := cli.CombinedOutput(); err != nil || string(text) != "PONG\n" {
		t.Errorf("redis-cli with a password in its URL prints %q, %v", text, err)
	}
}

// TestRemovedToken: a removed token ends the streams and connections that use it.
func TestRemovedToken(t *testing.T) {
	r := startRotating(t)
	k, err := client.New(client.Config{Servers: []string{r.instance.Addresses().GRPC}, Token: "one", Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if a, err := k.Decide(t.Context(), &client.Request{Path: "/"}); err != nil || a.Local {
		t.Fatalf("the first call gets %+v, %v", a, err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.instance.Addresses().RESP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(conn)
	_, _ = fmt.Fprint(conn, "AUTH a one\r\n")
	if line, err := in.ReadString('\n'); line != "+OK\r\n" {
		t.Fatalf("AUTH answers %q, %v", line, err)
	}
	r.use(t, "two")
	if line, err := in.ReadString('\n'); err == nil {
		t.Errorf("the connection goes on with %q", line)
	}
	eventually(t, "the end of the stream", func() bool {
		a, err := k.Decide(t.Context(), &client.Request{Path: "/"})
		return err == nil && a.Local
	})
}
