package acceptance

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/gateway"
)

// debianGateways are the gateways of Debian, each with its example. Traefik is not in Debian: see TestTraefik.
func debianGateways() []gateway.Gateway {
	return []gateway.Gateway{
		{
			Name: "nginx", Files: []string{"nginx.conf"}, Program: "nginx",
			Words: []string{"-e", "stderr", "-p", ".", "-c", "nginx.conf", "-g", "daemon off; master_process off;"}, Announces: true, Unreachable: 200, Silent: 200,
			Untrusted: 500,
		},
		{
			Name: "HAProxy", Files: []string{"haproxy.cfg", "haproxy.lua"}, Program: "haproxy",
			Words: []string{"-db", "-f", "haproxy.cfg"}, Announces: true, Unreachable: 200, Silent: 200, Untrusted: 500,
		},
		{
			Name: "Caddy", Files: []string{"Caddyfile"}, Program: "caddy",
			Words: []string{"run", "--config", "Caddyfile", "--adapter", "caddyfile"}, Unreachable: 502, Silent: 504, Untrusted: 403,
		},
	}
}

// TestGateways starts each gateway with its example.
func TestGateways(t *testing.T) {
	t.Parallel()
	for _, g := range debianGateways() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			g.Test(t, launchBehindGateway)
			g.Once(t)
			if asked := g.Subrequest(t); asked.Header["Headgate-Token"] != nil {
				t.Errorf("headgate server gets the token %q of the client", asked.Header["Headgate-Token"])
			}
		})
	}
}

// TestGatewaySpellings sends spellings of a limited path through each gateway to a service that routes by the raw path.
func TestGatewaySpellings(t *testing.T) {
	t.Parallel()
	for _, g := range debianGateways() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			g.Spell(t, launchBehindGateway)
		})
	}
}

// TestProxySpellings sends the same spellings through both data planes of the proxy.
func TestProxySpellings(t *testing.T) {
	t.Parallel()
	for _, plane := range []string{"standard", "fast"} {
		t.Run(plane, func(t *testing.T) {
			t.Parallel()
			gateway.Spell(t, func(service string) string {
				return start(t, "version: 1\nproxy: {listen: \"127.0.0.1:0\", upstream: %q, data_plane: "+plane+"}\n"+
					"rules: [{name: search, match: {path: /search/*}, key: [ip], limits: [2/1h]}]\n", "http://"+service).Proxy
			})
		})
	}
}

func launchBehindGateway(t *testing.T, settings string) gateway.Server {
	t.Helper()
	i := launchServer(t, file(t, settings))
	return gateway.Server{HTTP: i.HTTP, Stop: func() {
		_ = i.command.Process.Signal(syscall.SIGTERM)
		<-i.ended
	}}
}

// TestTraefik sends the subrequest of Traefik. The module cmd/test/traefik starts a real Traefik.
func TestTraefik(t *testing.T) {
	t.Parallel()
	i := launchServer(t, file(t, gateway.Settings(t)))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", i.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	answers := bufio.NewReader(conn)
	for n, want := range []int{204, 204, 429} {
		if _, err := io.WriteString(conn, gateway.TraefikAsks); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want || (answer.Header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("subrequest %d gets %d, %v", n, answer.StatusCode, answer.Header)
		}
	}
}
