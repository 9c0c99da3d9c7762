package acceptance

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// managed is headgate server with the limits of a management server.
func managed(t *testing.T, m *management, more ...string) *instance {
	t.Helper()
	command := exec.Command(binary, "server", "--envoy-env")
	command.Env = append(os.Environ(), "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL="+m.address, "CONFIG_GRPC_XDS_NODE_ID="+m.node,
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT="+m.files.CertFile,
		"CONFIG_GRPC_XDS_CLIENT_TLS_KEY="+m.files.KeyFile, "CONFIG_GRPC_XDS_SERVER_TLS_CACERT="+m.files.CAFile,
		"HEADGATE_STORE=memory", "HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"USE_STATSD=false", "LOG_LEVEL=INFO", "LOG_FORMAT=json", "HEADGATE_ADMIN_LISTEN=127.0.0.1:0", "HEADGATE_ADMIN_HEALTH=127.0.0.1:0")
	command.Env = append(command.Env, more...)
	return serve(t, "", command)
}

// inForce waits until a limit of the domain shop is in force, and gives the time that it took.
func (i *instance) inForce(t *testing.T, requests string) time.Duration {
	t.Helper()
	began := time.Now()
	want := "shop.client: unit=YEAR requests_per_unit=" + requests + ", shadow_mode: false, quota_mode: false\n"
	eventually(t, "the limit "+requests, func() bool { return i.limits() == want })
	return time.Since(began)
}

// limits gives the page /rlconfig.
func (i *instance) limits() string {
	_, text := pageOf(i.t, "http://"+i.listener("debug")+"/rlconfig")
	return text
}

// xdsTimes are how long the parts of a story last, and how long a repaired configuration and one of a returned
// server may take.
type xdsTimes struct{ refused, gone, repaired, returned time.Duration }

// TestManagement is short, and its machine may be busy: TestSoakManagement has the bounds in time. It follows a
// management server: a faulty first configuration, a good one, a faulty one that is
// repeated, and a server that goes and comes back with other limits under the same version.
func TestManagement(t *testing.T) {
	t.Parallel()
	followManagement(t, xdsTimes{refused: 3 * time.Second, gone: time.Second, repaired: patience, returned: patience})
}

func followManagement(t *testing.T, times xdsTimes) {
	t.Helper()
	m := manage(t, redis.NewCertificates(t), "headgate")
	m.publish(t, "1", faultyLimits())
	i := managed(t, m)
	eventually(t, "a refusal", func() bool { return m.refusals.Load() > 0 })
	if got := i.asked("a"); got != http.StatusServiceUnavailable {
		t.Errorf("with a refused first configuration, a call gets %d, want 503", got)
	}
	m.publish(t, "2", limitsOf(2))
	if elapsed := i.inForce(t, "2"); elapsed > times.repaired {
		t.Errorf("a repaired configuration is in force after %v, want at most %v", elapsed, times.repaired)
	}
	before := m.messages.Load()
	m.publish(t, "3", faultyLimits())
	began := time.Now()
	for time.Since(began) < times.refused {
		if got := i.limits(); !strings.Contains(got, "requests_per_unit=2,") {
			t.Fatalf("with a refused configuration, the limits are %q", got)
		}
		<-time.After(50 * time.Millisecond)
	}
	if sent := m.messages.Load() - before; sent < 1 || sent > 10 {
		t.Errorf("%d messages in %v with a refused configuration, want 1 to 10", sent, times.refused)
	}
	m.publish(t, "4", limitsOf(4))
	if elapsed := i.inForce(t, "4"); elapsed > times.repaired {
		t.Errorf("a repaired configuration is in force after %v, want at most %v", elapsed, times.repaired)
	}
	m.running.Stop()
	<-time.After(times.gone)
	if got := i.limits(); !strings.Contains(got, "requests_per_unit=4,") {
		t.Errorf("without a management server, the limits are %q", got)
	}
	m.start(t)
	m.publish(t, "4", limitsOf(5))
	if elapsed := i.inForce(t, "5"); elapsed > times.returned {
		t.Errorf("after the return of the server, its limits are in force after %v, want at most %v", elapsed, times.returned)
	}
	if status := i.stop(); status != 0 {
		t.Errorf("after SIGTERM the exit status is %d\n%s", status, i.text())
	}
}

// TestManagementOfAnotherName: the name in the server's certificate is checked, and the log has the reason.
func TestManagementOfAnotherName(t *testing.T) {
	t.Parallel()
	m := manage(t, redis.NewCertificates(t), "headgate")
	m.publish(t, "1", limitsOf(2))
	i := managed(t, m, "CONFIG_GRPC_XDS_SERVER_TLS_SAN=other.example")
	eventually(t, "the fault in the log", func() bool { return strings.Contains(i.text(), "other.example") })
	if got := i.asked("a"); got != http.StatusServiceUnavailable || m.messages.Load() != 0 {
		t.Errorf("a call gets %d, and the server %d messages, want 503 and none", got, m.messages.Load())
	}
}

// TestHealthOfManagement: the server is unhealthy until the management server has sent limits, good or refused, but
// not with FORCE_START_WITHOUT_INITIAL_CONFIG.
func TestHealthOfManagement(t *testing.T) {
	t.Parallel()
	m := manage(t, redis.NewCertificates(t), "headgate")
	waiting, forced := managed(t, m), managed(t, m, "FORCE_START_WITHOUT_INITIAL_CONFIG=true")
	healthy := func(i *instance) func() bool {
		return func() bool {
			status, _ := pageOf(t, "http://"+i.HTTP+"/healthcheck")
			return status == http.StatusOK
		}
	}
	eventually(t, "the health with FORCE_START_WITHOUT_INITIAL_CONFIG", healthy(forced))
	if healthy(waiting)() {
		t.Error("the server is healthy before the management server sent anything")
	}
	m.publish(t, "1", faultyLimits())
	eventually(t, "the health after refused limits", healthy(waiting))
	if got := waiting.asked("a"); got != http.StatusServiceUnavailable {
		t.Errorf("with refused limits, a call gets %d, want 503", got)
	}
}
