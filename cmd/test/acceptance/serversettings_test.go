package acceptance

import (
	"bufio"
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestLogAsText: log.format text, as LOG_FORMAT sets it, writes no JSON.
func TestLogAsText(t *testing.T) {
	t.Parallel()
	command := exec.Command(binary, "server", "--config", file(t, "version: 1\nrules: []\nlog: {format: text}\n"+
		"server: {grpc: off, http: \"127.0.0.1:0\"}\n"+adminAnywhere))
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "time=") || !strings.Contains(line, " level=INFO msg=serving ") {
		t.Errorf("the first line is %q, %v", line, err)
	}
	_ = command.Process.Signal(os.Interrupt)
	_ = stderr.Close()
	_ = command.Wait()
}

// TestClientNameOfTheServer: with client_name, only clients whose certificate has the name are served.
func TestClientNameOfTheServer(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	own, gateway, stranger := a.issue(t, "127.0.0.1", 2), a.issue(t, "gateway.internal", 3), a.issue(t, "stranger.internal", 4)
	i := launchServer(t, file(t, "version: 1\nrules: []\nserver:\n  http: off\n  grpc:\n    address: \"127.0.0.1:0\"\n    tls: {cert: "+
		own.cert+", key: "+own.key+", client_ca: "+a.path+", client_name: gateway.internal}\n"+adminAnywhere))
	for shown, want := range map[pair]bool{gateway: true, stranger: false} {
		conn, err := grpc.NewClient("passthrough:///"+i.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: a.pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{shown.load(t)},
		})))
		if err != nil {
			t.Fatal(err)
		}
		_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if (err == nil) != want {
			t.Errorf("the client %s: got %v, want success %t", shown.cert, err, want)
		}
		_ = conn.Close()
	}
}

// TestHealthFollowsRedis: with unhealthy_without_store, /healthcheck follows Redis without any request.
func TestHealthFollowsRedis(t *testing.T) {
	t.Parallel()
	store := testserver.Start(t)
	i := launchServer(t, file(t, "version: 1\nrules: []\nstore: redis://"+store.Addr+
		"\nserver: {grpc: off, http: \"127.0.0.1:0\", unhealthy_without_store: true}\n"+adminAnywhere))
	health := func(want int) func() bool {
		return func() bool { status, _ := pageOf(t, "http://"+i.HTTP+"/healthcheck"); return status == want }
	}
	eventually(t, "the health", health(http.StatusOK))
	store.Kill()
	eventually(t, "the bad health", health(http.StatusInternalServerError))
	store.Restart()
	eventually(t, "the good health again", health(http.StatusOK))
}
