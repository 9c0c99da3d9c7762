package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/guard"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// way is a protocol of headgate server beside Envoy's.
type way struct {
	name string
	open func(t *testing.T, at, prefix string) asker
	at   func(*instance) string
}

func otherWays() []way {
	return []way{
		{"http", openJSON, func(i *instance) string { return i.HTTP }},
		{"resp", openRedis, func(i *instance) string { return i.RESP }},
	}
}

// waysAndStream are otherWays, and the stream of package client. TestServerStreamsHandOver has its restarts.
func waysAndStream() []way {
	return append(otherWays(), way{"stream", openClient, func(i *instance) string { return i.GRPC }})
}

// load is one call after another of 16 workers on 4 connections. Each worker has a key of its own.
func (w *way) load(prefix string, retries int) *serverLoad {
	return &serverLoad{connections: 4, workers: 16, retries: retries, pause: 2 * time.Millisecond, open: func(t *testing.T, at string) asker {
		t.Helper()
		return w.open(t, at, prefix)
	}}
}

// openJSON asks POST /v1/decide. A repeated call has a new connection.
func openJSON(t *testing.T, at, prefix string) asker {
	t.Helper()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	sender := &http.Client{Transport: transport}
	return func(ctx context.Context, worker, _, attempt int) error {
		if attempt > 0 {
			transport.CloseIdleConnections()
		}
		body := fmt.Sprintf(`{"domain": "shop", "descriptors": [{"key": "user", "value": "%s-%d"}]}`, prefix, worker)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+"/v1/decide", strings.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := sender.Do(r)
		if err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		switch {
		case err != nil || answer.StatusCode == http.StatusServiceUnavailable:
			return status.Error(codes.Unavailable, string(text))
		case answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"verdict":"allow"`)):
			return status.Errorf(codes.Internal, "%d %s", answer.StatusCode, text)
		}
		return nil
	}
}

// openClient asks with package client. What gets no answer of the server is unavailable.
func openClient(t *testing.T, at, prefix string) asker {
	t.Helper()
	k, err := client.New(client.Config{Servers: []string{at}, Timeout: patience, Fallback: guard.FallbackError})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return func(ctx context.Context, worker, _, _ int) error {
		a, err := k.Decide(ctx, &client.Request{
			Domain: "shop", Descriptors: headgate.Descriptors{{Name: "user", Value: fmt.Sprint(prefix, "-", worker)}},
		})
		switch {
		case errors.Is(err, client.ErrUnavailable):
			return status.Error(codes.Unavailable, err.Error())
		case err != nil || a.Verdict != headgate.Allow:
			return status.Errorf(codes.Internal, "%+v, %v", a, err)
		}
		return nil
	}
}

// openRedis asks with HG.DECIDE, one command at a time. A repeated call has a new connection.
func openRedis(t *testing.T, at, prefix string) asker {
	t.Helper()
	c := &redisConn{at: at}
	t.Cleanup(c.close)
	return func(ctx context.Context, worker, _, attempt int) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if attempt > 0 {
			c.close()
		}
		text, err := c.send(ctx, redisCommand("HG.DECIDE", "domain=shop", fmt.Sprintf("descriptor:user=%s-%d", prefix, worker)))
		if err != nil {
			c.close()
			return status.Error(codes.Unavailable, err.Error())
		}
		if text != "allow" {
			return status.Error(codes.Internal, text)
		}
		return nil
	}
}

// redisConn is a connection that asks HG.DECIDE.
type redisConn struct {
	mu   sync.Mutex
	at   string
	conn net.Conn
	in   *bufio.Reader
}

func (c *redisConn) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// send sends a command, and gives the verdict of the answer. The error is that of the connection, or -UNAVAILABLE.
func (c *redisConn) send(ctx context.Context, command string) (verdict string, err error) {
	if c.conn == nil {
		if c.conn, err = new(net.Dialer).DialContext(ctx, "tcp", c.at); err != nil {
			return "", err
		}
		c.in = bufio.NewReader(c.conn)
	}
	deadline, _ := ctx.Deadline()
	if err := errors.Join(c.conn.SetDeadline(deadline), writeAll(c.conn, command)); err != nil {
		return "", err
	}
	return c.verdict()
}

func writeAll(conn net.Conn, text string) error {
	_, err := io.WriteString(conn, text)
	return err
}

// verdict reads an answer in RESP2: an array of names and values.
func (c *redisConn) verdict() (verdict string, err error) {
	head, err := c.line()
	var left int
	switch {
	case err != nil:
		return "", err
	case strings.HasPrefix(head, "-UNAVAILABLE"):
		return "", errors.New(head)
	}
	if _, err := fmt.Sscanf(head, "*%d", &left); err != nil {
		return head, nil //nolint:nilerr // Another answer is shown to the test.
	}
	name := ""
	for ; left > 0; left-- {
		text, more, err := c.value()
		if err != nil {
			return "", err
		}
		if left += more; name == "verdict" {
			verdict = text
		}
		name = text
	}
	return verdict, nil
}

// value reads one value. more is the number of values in it, if it is an array.
func (c *redisConn) value() (text string, more int, err error) {
	if text, err = c.line(); err != nil {
		return "", 0, err
	}
	switch {
	case strings.HasPrefix(text, "*"):
		_, err = fmt.Sscanf(text, "*%d", &more)
		return "", more, err
	case strings.HasPrefix(text, "$"):
		text, err = c.line()
	}
	return text, 0, err
}

func (c *redisConn) line() (string, error) {
	text, err := c.in.ReadString('\n')
	return strings.TrimSuffix(text, "\r\n"), err
}

// waysConfigured has a rule for users. It takes the address of Redis, and those of the server.
const waysConfigured = `version: 1
store: redis://%s
store_timeout: %s
rules:
  - {name: user, match: {domain: shop, descriptors: {user: "*"}}, key: [descriptor:user], algorithm: fixed_window,
     limits: [1000000000/365d], fallback: error}
server: {grpc: "%s", http: "%s", resp: "%s"}
` + adminAnywhere

// TestServerWaysWithoutRedis takes Redis away while clients ask over HTTP, the Redis protocol and streams: as
// TestServerWithoutRedis does for Envoy's service.
func TestServerWaysWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := testserver.Start(t)
	const anywhere = "127.0.0.1:0"
	i := launchServer(t, file(t, fmt.Sprintf(waysConfigured, redis.Addr, busyMachine.timeout, anywhere, anywhere, anywhere)))
	for _, w := range waysAndStream() {
		for _, o := range []absence{
			{w.name + "-ended", redis.Kill, redis.Restart, true, busyMachine},
			{w.name + "-silent", redis.Pause, redis.Resume, false, busyMachine},
		} {
			o.meet(t, i, w.load(o.name, 0), w.at(i), 2*busyMachine.timeout)
		}
	}
}

// TestServerWaysHandOver restarts the server under load over HTTP and the Redis protocol: as TestServerHandOver does for
// Envoy's service. A client that repeats a call once sees no failure.
func TestServerWaysHandOver(t *testing.T) {
	t.Parallel()
	const off, anywhere = "off", "127.0.0.1:0"
	redis := testserver.Start(t)
	for _, w := range otherWays() {
		at, socket := inheritable(t)
		addresses := map[string][]any{"http": {off, "systemd", off}, "resp": {off, off, "systemd"}}[w.name]
		path := file(t, fmt.Sprintf(waysConfigured, append([]any{redis.Addr, "5s"}, addresses...)...))
		all := w.load("worker", 1).throughRestarts(t, at, path, socket, 2, 50*time.Millisecond)
		counts := launchServer(t, file(t, fmt.Sprintf(waysConfigured, redis.Addr, "5s", anywhere, off, off)))
		w.load("worker", 1).countedOnce(t, rateLimitClient(t, counts.GRPC), all)
		redis.CLI("FLUSHALL")
	}
}

// TestServerWaysReload reloads 10,000 rules under load over HTTP, the Redis protocol and streams. No call fails.
func TestServerWaysReload(t *testing.T) {
	const anywhere = "127.0.0.1:0"
	version := func(n int) []byte {
		text := fmt.Sprintf(waysConfigured, "", "5s", anywhere, anywhere, anywhere)
		text = strings.Replace(text, "store: redis://\nstore_timeout: 5s\n", "max_memory: 64MiB\n", 1)
		var more strings.Builder
		for rule := range manyRules {
			fmt.Fprintf(&more, "  - {name: r%d, match: {path: /r/%d}, key: [ip], limits: [%d/1h]}\n", rule, rule, 100+rule+n)
		}
		return []byte(strings.Replace(text, "rules:\n", "rules:\n"+more.String(), 1))
	}
	i := launchServer(t, file(t, string(version(0))))
	for n, w := range waysAndStream() {
		all := w.load(w.name, 0).run(t, w.at(i), func() {
			done := len(reloadTimes(t, i))
			replace(t, i.path, version(n+1))
			if err := i.command.Process.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
			}
			eventually(t, "the reload", func() bool { return len(reloadTimes(t, i)) > done })
		})
		succeed(t, all)
		t.Logf("%s: %d calls, 99%% within %v, all within %v; the reload takes %v", w.name, len(all), slowest(all, 99), slowest(all, 100), reloadTimes(t, i))
	}
}
