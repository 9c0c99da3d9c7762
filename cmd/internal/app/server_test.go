package app

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/server"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// serverOptions describe an instance of headgate server. The settings are added to the file.
func serverOptions(t *testing.T, settings string) Options {
	t.Helper()
	return Options{Config: serverConfig(t, settings), Server: true, Log: slog.New(slog.DiscardHandler), Version: "v1"}
}

func serverConfig(t *testing.T, settings string) *config.Config {
	t.Helper()
	text := "version: 1\nmax_memory: 1MiB\nshutdown_timeout: 20s\nadmin: {listen: '127.0.0.1:0', health: '127.0.0.1:0'}\n" + settings
	if !strings.Contains(settings, "server:") {
		text += "\nserver: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}"
	}
	if !strings.Contains(settings, "rules:") {
		text += "\nrules: [{name: client, key: [ip], limits: [2/1h]}]"
	}
	c, err := config.Parse("test.yaml", []byte(text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func startServer(t *testing.T, o Options) *Instance {
	t.Helper()
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Stop() })
	return i
}

// health queries the gRPC health service. With nil, it uses no TLS.
func health(t *testing.T, at, name string, secured *tls.Config) (healthpb.HealthCheckResponse_ServingStatus, error) {
	t.Helper()
	creds := insecure.NewCredentials()
	if secured != nil {
		creds = credentials.NewTLS(secured)
	}
	client, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := healthpb.NewHealthClient(client).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
	return answer.GetStatus(), err
}

func serving(t *testing.T, at, name string) bool {
	t.Helper()
	got, err := health(t, at, name, nil)
	if err != nil {
		t.Fatalf("health of %q: %v", name, err)
	}
	return got == healthpb.HealthCheckResponse_SERVING
}

// TestServerLife tells the life of headgate server with a store in memory.
func TestServerLife(t *testing.T) {
	o := serverOptions(t, "proxy: {listen: '127.0.0.1:0', upstream: 'http://127.0.0.1:9'}\nlog: {access: json, access_file: /none/at/all}")
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	at := i.Addresses()
	if at.Proxy != "" {
		t.Errorf("the server also serves the proxy on %s", at.Proxy)
	}
	eventually(t, "the health", func() bool { return serving(t, at.GRPC, "ratelimit") })
	if !serving(t, at.GRPC, "") {
		t.Error("the empty name does not serve")
	}
	if status, text := get(t, at.HTTP+"/healthcheck"); status != http.StatusOK || text != "OK" {
		t.Errorf("healthcheck answers %d %q", status, text)
	}
	if status, _ := get(t, at.HTTP+"/none"); status != http.StatusNotFound {
		t.Errorf("an unknown path answers %d", status)
	}
	if status, text := get(t, at.Health+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz answers %d %q", status, text)
	}
	var s admin.Status
	if _, text := get(t, at.Admin+"/api/v1/status"); json.Unmarshal([]byte(text), &s) != nil || s.Listen.GRPC != at.GRPC || s.Listen.HTTP != at.HTTP {
		t.Errorf("the status is %s", text)
	}
	_, text := get(t, at.Health+"/metrics")
	for _, want := range []string{`headgate_server_connections_max{listener="grpc"} 4096`, `headgate_server_connections_max{listener="http"} 1024`} {
		if !strings.Contains(text, want) || strings.Contains(text, "headgate_proxy_connections") {
			t.Errorf("the metrics do not have %s, or have those of the proxy", want)
		}
	}
	for range 2 { // A second Stop does the same as the first.
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{at.GRPC, at.HTTP, at.Admin} {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Errorf("%s still listens after Stop", address)
		}
	}
}

// TestServerIsUnhealthyWithoutItsStore: until the store was reached, the server is unhealthy. After
// that it is healthy.
func TestServerIsUnhealthyWithoutItsStore(t *testing.T) {
	t.Parallel()
	i := startServer(t, serverOptions(t, "store: redis://127.0.0.1:1"))
	at := i.Addresses()
	if status, text := get(t, at.HTTP+"/healthcheck"); status != http.StatusInternalServerError || text != "" {
		t.Errorf("healthcheck answers %d %q, want 500 without a body", status, text)
	}
	if serving(t, at.GRPC, "ratelimit") || !serving(t, at.GRPC, "") {
		t.Error("the name ratelimit serves, or the empty name does not")
	}
	reached := startServer(t, serverOptions(t, "store: redis://"+redis.Start(t).Addr))
	eventually(t, "the health", func() bool { return serving(t, reached.Addresses().GRPC, "ratelimit") })
	if status, _ := get(t, reached.Addresses().HTTP+"/healthcheck"); status != http.StatusOK {
		t.Errorf("healthcheck answers %d", status)
	}
}

// TestHealthFollowsTheStore: with unhealthy_without_store, the server is unhealthy while Redis is gone, and
// healthy again without a request. Without the setting it stays healthy.
func TestHealthFollowsTheStore(t *testing.T) {
	t.Parallel()
	store := redis.Start(t)
	const settings = "server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', unhealthy_without_store: %t}\nstore: redis://%s"
	following := startServer(t, serverOptions(t, fmt.Sprintf(settings, true, store.Addr))).Addresses()
	other := startServer(t, serverOptions(t, fmt.Sprintf(settings, false, store.Addr))).Addresses()
	for _, at := range []string{following.GRPC, other.GRPC} {
		eventually(t, "the health", func() bool { return serving(t, at, "ratelimit") })
	}
	store.Kill()
	eventually(t, "the bad health", func() bool { return !serving(t, following.GRPC, "ratelimit") })
	if status, _ := get(t, following.HTTP+"/healthcheck"); status != http.StatusInternalServerError {
		t.Errorf("healthcheck answers %d without the store", status)
	}
	if !serving(t, following.GRPC, "") || !serving(t, other.GRPC, "ratelimit") {
		t.Error("the empty name, or the server without the setting, is unhealthy too")
	}
	store.Restart()
	eventually(t, "the good health", func() bool { return serving(t, following.GRPC, "ratelimit") })
	store.Pause() // Connections stay open, and nothing is answered.
	eventually(t, "the bad health of a store that hangs", func() bool { return !serving(t, following.GRPC, "ratelimit") })
	store.Resume()
	eventually(t, "the good health at last", func() bool { return serving(t, following.GRPC, "ratelimit") })
}

// TestServerReload: rules change at once, listeners stay, and a changed address needs a restart.
func TestServerReload(t *testing.T) {
	var log logs.Text
	o := serverOptions(t, "")
	o.Log = log.Logger()
	next := serverConfig(t, "rules: [{name: second, key: [ip], limits: [9/1h]}]\nserver: {grpc: '127.0.0.1:9', http: '127.0.0.1:0'}")
	o.Load = func() (*config.Config, error) { return next, nil }
	i := startServer(t, o)
	at := i.Addresses()
	log.Take()
	if err := i.Reload(); err != nil {
		t.Fatal(err)
	}
	if text := log.Take(); !strings.Contains(text, "setting=server.grpc") || strings.Contains(text, "setting=server.http") {
		t.Errorf("the log does not name the setting that needs a restart: %s", text)
	}
	if s := i.Status(); s.Rules[0].Name != "second" || s.Listen.GRPC != at.GRPC || !serving(t, at.GRPC, "") {
		t.Errorf("after the reload the status is %+v", s)
	}
	next = serverConfig(t, "")
	next.Server = nil
	if err := i.Reload(); err == nil || !strings.Contains(err.Error(), "has no server") {
		t.Errorf("a configuration without the section: got %v", err)
	}
}

// TestServerStartFails: the error names the setting, and no socket stays open.
func TestServerStartFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, settings := range map[string]string{
		"server.grpc":     fmt.Sprintf("server: {grpc: '%s', http: '127.0.0.1:0'}", taken.Addr()),
		"server.http":     fmt.Sprintf("server: {grpc: '127.0.0.1:0', http: '%s'}", taken.Addr()),
		"server.grpc.tls": "server: {grpc: {address: '127.0.0.1:0', tls: {cert: none.crt, key: none.key}}}",
		"server.http.tls": "server: {http: {address: '127.0.0.1:0', tls: {cert: none.crt, key: none.key}}}",
	} {
		if _, err := Start(t.Context(), serverOptions(t, settings)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start returns %v, want an error that names %s", err, want)
		}
		if strings.HasSuffix(want, "tls") {
			if err := Probe(serverConfig(t, settings)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Probe returns %v, want an error that names %s", err, want)
			}
		}
	}
	if err := Probe(serverConfig(t, "server: {grpc: 'unix:/none/at/all.sock', http: off}")); err == nil || !strings.Contains(err.Error(), "server.grpc") {
		t.Errorf("Probe of a missing folder returns %v", err)
	}
}

// TestServerCertificates: both listeners get new certificates at a reload, even of a faulty
// configuration. The HTTP listener does not offer HTTP/2.
func TestServerCertificates(t *testing.T) {
	old, fresh := redis.NewCertificates(t), redis.NewCertificates(t)
	files := fmt.Sprintf("tls: {cert: %q, key: %q}", old.CertFile, old.KeyFile)
	i := startServer(t, serverOptions(t, fmt.Sprintf("server: {grpc: {address: '127.0.0.1:0', %s}, http: {address: '127.0.0.1:0', %s}}", files, files)))
	at := i.Addresses()
	check := func(c *redis.Certificates) {
		t.Helper()
		if got, err := health(t, at.GRPC, "", c.Client); err != nil || got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("the health over TLS is %v, %v", got, err)
		}
		offering := c.Client.Clone()
		offering.NextProtos = []string{"h2", "http/1.1"}
		conn, err := (&tls.Dialer{Config: offering}).DialContext(t.Context(), "tcp", at.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if protocol := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; protocol != "http/1.1" {
			t.Errorf("the HTTP listener speaks %q, want http/1.1", protocol)
		}
		fmt.Fprintf(conn, "GET /healthcheck HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		first := make([]byte, len("HTTP/1.1 200"))
		if _, err := conn.Read(first); err != nil || string(first) != "HTTP/1.1 200" {
			t.Errorf("healthcheck over TLS answers %q, %v", first, err)
		}
	}
	eventually(t, "the health", func() bool {
		got, _ := health(t, at.GRPC, "ratelimit", old.Client)
		return got == healthpb.HealthCheckResponse_SERVING
	})
	check(old)
	for from, to := range map[string]string{fresh.CertFile: old.CertFile, fresh.KeyFile: old.KeyFile} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Reload(); err == nil {
		t.Error("a reload without a file succeeds")
	}
	check(fresh)
	if err := os.WriteFile(filepath.Clean(old.CertFile), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = i.Reload()
	parts := map[string]bool{}
	for _, f := range i.Status().Reload.Failures {
		parts[f.Part] = true
	}
	if !parts["gRPC certificates"] || !parts["HTTP certificates"] {
		t.Errorf("the failures of the reload are of %v", parts)
	}
	check(fresh)
}

// TestServerDrains: during a drain, the health is bad on both listeners' sides, and a watching
// client is told.
func TestServerDrains(t *testing.T) {
	i := startServer(t, serverOptions(t, ""))
	at := i.Addresses()
	eventually(t, "the health", func() bool { return serving(t, at.GRPC, "ratelimit") })
	client, err := grpc.NewClient("passthrough:///"+at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stream, err := healthpb.NewHealthClient(client).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := stream.Recv(); err != nil || first.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("the first status is %v, %v", first, err)
	}
	i.draining.Store(true)
	if status, _ := get(t, at.HTTP+"/healthcheck"); status != http.StatusInternalServerError {
		t.Errorf("healthcheck answers %d while draining", status)
	}
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	if last, err := stream.Recv(); err != nil || last.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the last status is %v, %v", last, err)
	}
}

// TestDrainSaysWhatItCut: Stop gives an error, and the program then exits with 1, if the deadline cut off a client that had
// answers to get, over each protocol without a drain of its own.
func TestDrainSaysWhatItCut(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settings, want string
		address        func(admin.Addresses) string
		sends          func(*testing.T, net.Conn, *server.Server)
	}{
		"a half body":    {"", "cut off 1 request: ", func(a admin.Addresses) string { return a.HTTP }, sendHalf},
		"unread answers": {", resp: '127.0.0.1:0'", "closed 1 connection before", func(a admin.Addresses) string { return a.RESP }, sendUnread},
		"nothing sent":   {"", "", func(a admin.Addresses) string { return a.HTTP }, func(*testing.T, net.Conn, *server.Server) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := serverOptions(t, "server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'"+row.settings+"}")
			o.Config.ShutdownTimeout = 3 * time.Second
			i := startServer(t, o)
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", row.address(i.Addresses()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			row.sends(t, conn, decisionServerOf(t, i))
			if err := i.Stop(); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("Stop gives %v, want %q", err, row.want)
			}
		})
	}
}

// sendHalf sends a part of a body.
func sendHalf(t *testing.T, conn net.Conn, front *server.Server) {
	t.Helper()
	_, _ = io.WriteString(conn, "POST /v1/decide HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
	eventually(t, "the request", func() bool { return inFlight(front) > 0 })
}

func inFlight(front *server.Server) int64 {
	n, _ := front.Busy()
	return n
}

func commandsOfRESP(front *server.Server) uint64 {
	_, n := front.Busy()
	return n
}

// sendUnread sends until the server reads no more, because its answers are not read.
func sendUnread(t *testing.T, conn net.Conn, front *server.Server) {
	t.Helper()
	commands := strings.Repeat("CL.THROTTLE k 1 1 60\r\n", 1000)
	for {
		before := commandsOfRESP(front)
		_ = conn.SetWriteDeadline(time.Now().Add(2 * time.Second)) // The server closes the connection after 10 s.
		n, err := io.WriteString(conn, commands)
		if err != nil && n == 0 && commandsOfRESP(front) == before {
			return
		}
		commands = commands[n:] + commands[:n]
	}
}

// TestHealthOfBothStores: with store_per_second, the server is unhealthy until both stores were reached. With
// unhealthy_without_store, it is also unhealthy while one of them is gone.
func TestHealthOfBothStores(t *testing.T) {
	t.Parallel()
	main, second := redis.Start(t), redis.Start(t)
	second.Kill()
	i := startServer(t, serverOptions(t, fmt.Sprintf("server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', unhealthy_without_store: true}\n"+
		"store: redis://%s\nstore_per_second: redis://%s", main.Addr, second.Addr)))
	at := i.Addresses()
	eventually(t, "the main store", func() bool { return i.rules.Store().Redis().Stats().Connected })
	if serving(t, at.GRPC, "ratelimit") {
		t.Error("the server is healthy before store_per_second was reached")
	}
	second.Restart()
	eventually(t, "the health", func() bool { return serving(t, at.GRPC, "ratelimit") })
	for _, server := range []*redis.Server{second, main} {
		server.Kill()
		eventually(t, "the end of the health", func() bool { return !serving(t, at.GRPC, "ratelimit") })
		server.Restart()
		eventually(t, "the health again", func() bool { return serving(t, at.GRPC, "ratelimit") })
	}
}

// TestServerRefusesWhatItCannotDecide: rules that need the end of requests are named at the start, in a reload
// and by a check.
func TestServerRefusesWhatItCannotDecide(t *testing.T) {
	const good = "rules: [{name: a, key: [all], limits: [5/s]}]"
	for settings, want := range map[string]string{
		"rules: [{name: slow, key: [all], in_flight: 3}]":                           `rule "slow" has in_flight`,
		"rules: [{name: late, key: [all], limits: [5/s], count: {status: [404]}}]":  `rule "late" has count`,
		"rules: [{name: big, key: [all], limits: [5/s], settle: 'header:X-Units'}]": `rule "big" has settle`,
		good + "\nthrottle: {concurrency: 5}":                                       "throttle needs the end of requests",
	} {
		bad := serverConfig(t, settings)
		if err := Probe(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a check says %v", settings, err)
		}
		o := serverOptions(t, settings)
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the start says %v", settings, err)
		}
		o = serverOptions(t, good)
		o.Load = func() (*config.Config, error) { return bad, nil }
		i := startServer(t, o)
		if err := i.Reload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a reload says %v", settings, err)
		}
	}
	off := serverConfig(t, "rules: [{name: slow, key: [all], in_flight: 3, mode: off}]")
	if err := Probe(off); err != nil {
		t.Errorf("a rule that is off: %v", err)
	}
}
