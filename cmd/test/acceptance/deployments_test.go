package acceptance

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// deployed is what the environments of deployments refer to: servers and files of the test.
type deployed struct {
	certificates *redis.Certificates
	xds, root    string
	single       *redis.Server // for deployments with and without TLS, and with sentinels
	secured      *redis.Server
	sentinel     *redis.Sentinel
	securedFiles *redis.Certificates
}

// redisPassword is that of the deployments with REDIS_AUTH.
const redisPassword = "redis_auth_password"

func newDeployed(t *testing.T) *deployed {
	t.Helper()
	p := &deployed{certificates: redis.NewCertificates(t), root: t.TempDir()}
	folder := filepath.Join(p.root, "ratelimit", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "shop.yaml"), []byte(shopTwice), 0o600); err != nil {
		t.Fatal(err)
	}
	m := manage(t, p.certificates, "envoy-ratelimit")
	m.publish(t, "1", limitsOf(2))
	p.xds = m.address
	p.sentinel, p.single = redis.StartSentinel(t, 1, 1), redis.Start(t)
	p.secured, p.securedFiles = redis.StartTLS(t, "--tls-auth-clients", "yes")
	p.secured.CLI("CONFIG", "SET", "requirepass", redisPassword)
	return p
}

// environment is that of a deployment, with the addresses, the files and the name of the master of the test.
func (p *deployed) environment(t *testing.T, lines []string) (all []string, secured bool) {
	t.Helper()
	is := map[string]string{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		is[name] = value
	}
	for _, name := range []string{"HOST", "GRPC_HOST", "DEBUG_HOST"} {
		if is[name] == "" {
			is[name] = "127.0.0.1"
		}
	}
	for _, name := range []string{"PORT", "GRPC_PORT", "DEBUG_PORT"} {
		is[name] = "0"
	}
	is["RUNTIME_ROOT"] = p.root
	is["HEADGATE_STORE_TIMEOUT"] = "10s" // A busy machine is slower than the default.
	is["REDIS_URL"] = p.single.Addr
	files := p.certificates
	switch {
	case is["REDIS_TYPE"] == "sentinel":
		is["REDIS_URL"] = p.sentinel.Name + "," + p.sentinel.Sentinels[0].Addr
	case is["REDIS_TLS"] == "true":
		is["REDIS_URL"], is["REDIS_AUTH"] = p.secured.Addr, redisPassword
		is["REDIS_TLS_CACERT"] = p.securedFiles.CAFile
	}
	for name, path := range map[string]string{
		"GRPC_SERVER_TLS_CERT": files.CertFile, "GRPC_SERVER_TLS_KEY": files.KeyFile, "GRPC_SERVER_TLS_CA_CERT": files.CAFile,
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": files.CertFile, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": files.KeyFile,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": files.CAFile, "CONFIG_GRPC_XDS_SERVER_URL": p.xds,
		"REDIS_TLS_CLIENT_CERT": p.securedFiles.CertFile, "REDIS_TLS_CLIENT_KEY": p.securedFiles.KeyFile,
		"PROMETHEUS_ADDR":        "127.0.0.1:0",
		"PROMETHEUS_MAPPER_YAML": filepath.Join("..", "..", "..", "cmd", "internal", "app", "testdata", "gateway", "statsd_conf.yaml"),
	} {
		if is[name] != "" {
			is[name] = path
		}
	}
	for name, value := range is {
		all = append(all, name+"="+value)
	}
	return append(all, "HEADGATE_LOG_FORMAT=json", "HEADGATE_ADMIN_LISTEN=127.0.0.1:0", "HEADGATE_ADMIN_HEALTH=127.0.0.1:0",
			"HEADGATE_STORE_TIMEOUT=10s"),
		is["GRPC_SERVER_USE_TLS"] == "true"
}

// TestDeployments starts the program under the name ratelimit with the environments of Envoy Gateway's 19
// deployments, of Istio and of Contour. It becomes healthy and decides, without a client certificate.
func TestDeployments(t *testing.T) {
	t.Parallel()
	p := newDeployed(t)
	name := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(binary, name); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join("..", "..", "..", "cmd", "internal", "envoy", "envoyenv", "testdata")
	paths, err := filepath.Glob(filepath.Join(data, "*", "*.env"))
	others, otherErr := filepath.Glob(filepath.Join(data, "*.env"))
	if err != nil || otherErr != nil || len(paths) != 19 || len(others) != 2 {
		t.Fatalf("%d deployments of Envoy Gateway and %d others: %v, %v", len(paths), len(others), err, otherErr)
	}
	for _, path := range append(paths, others...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			environment, secured := p.environment(t, variablesOf(t, path))
			command := exec.Command(name)
			command.Env = append(os.Environ(), environment...)
			i := serve(t, "", command)
			eventually(t, "health", func() bool { got, _ := pageOf(t, "http://"+local(i.HTTP)+"/healthcheck"); return got == http.StatusOK })
			creds := insecure.NewCredentials()
			if secured {
				creds = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.certificates.Client.RootCAs})
			}
			p.decides(t, local(i.GRPC), creds, filepath.Base(path))
			if status := i.stop(); status != 0 {
				t.Errorf("after SIGTERM the exit status is %d\n%s", status, i.text())
			}
		})
	}
}

// decides checks that a server admits two hits of a client and refuses a third one.
func (p *deployed) decides(t *testing.T, address string, creds credentials.TransportCredentials, client string) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	one := &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "client", Value: client}}},
	}}
	service := ratelimitv3.NewRateLimitServiceClient(conn)
	eventually(t, "the limits", func() bool { // Health may come before the limits of a management server.
		got, err := service.ShouldRateLimit(t.Context(), one)
		return err == nil && got.GetStatuses()[0].GetCurrentLimit() != nil
	})
	for n, want := range []ratelimitv3.RateLimitResponse_Code{ratelimitv3.RateLimitResponse_OK, ratelimitv3.RateLimitResponse_OVER_LIMIT} {
		got, err := service.ShouldRateLimit(t.Context(), one)
		if err != nil || got.GetOverallCode() != want {
			t.Errorf("hit %d of 2: %v, %v, want %v", n+2, got, err, want)
		}
	}
}

// local is the address on loopback of a listener on all addresses.
func local(address string) string { return strings.Replace(address, "[::]", "127.0.0.1", 1) }

// variablesOf reads a file of variables.
func variablesOf(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
