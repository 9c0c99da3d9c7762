package deploy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// serverOnly is a release of the decision service alone.
const serverOnly = `
deployment: {enabled: false}
fairShare: {enabled: false}
server:
  enabled: true
  config:
    domains: {shop: {descriptors: [{key: client, limits: 3/d}]}}
`

// serverEverything sets each value of the decision service.
const serverEverything = `
headgate: {image: {repository: mirror.example/headgate, tag: edge}}
server:
  replicaCount: 3
  config:
    store: "redis://redis.bank:6379"
    rules: [{name: all, key: ["descriptor:client"], limits: ["1000000/1h"], match: {domain: other}}]
    server: {grpc: {max_connections: 7}, rate_limit_service: {stop_increment: true}}
  ports: {grpc: 81, http: 82, health: 83, admin: 84}
  healthAddress: "::"
  maxMemory: 1GiB
  preStopSeconds: 7
  shutdownSeconds: 20
  service: {type: NodePort, annotations: {a: b}}
  podDisruptionBudget: {maxUnavailable: 25%}
  env: [{name: HEADGATE_STORE_PASSWORD_FILE, value: /keys/redis}]
  volumeMounts: [{name: keys, mountPath: /keys}]
  resources: {limits: {memory: 3Gi}}
networkPolicy: {enabled: true}
podMonitor: {enabled: true, labels: {release: prometheus}}
imagePullSecrets: [{name: mirror}]
serviceAccountName: limits
podAnnotations: {c: d}
podLabels: {team: kyc}
podSecurityContext: {fsGroup: 1}
volumes: [{name: keys, secret: {secretName: keys}}]
nodeSelector: {disk: ssd}
`

// serverObjects are the objects of the decision service.
type serverObjects struct {
	config     *core.ConfigMap
	deployment *apps.Deployment
	service    *core.Service
	pod        core.PodSpec
	headgate   core.Container
}

func renderedServer(t *testing.T, texts ...string) serverObjects {
	t.Helper()
	all := rendered(t, append([]string{serverOnly}, texts...)...)
	s := serverObjects{
		config:     into[core.ConfigMap](t, all, "serverconfigmap.yaml"),
		deployment: into[apps.Deployment](t, all, "serverdeployment.yaml"),
		service:    into[core.Service](t, all, "serverservice.yaml"),
	}
	s.pod = s.deployment.Spec.Template.Spec
	s.headgate = container(t, s.pod, "headgate")
	return s
}

// TestServerObjects checks which objects a release has, and that each one has only fields of its
// Kubernetes type.
func TestServerObjects(t *testing.T) {
	alone := []string{"NOTES.txt", "serverconfigmap.yaml", "serverdeployment.yaml", "serverpoddisruptionbudget.yaml", "serverservice.yaml"}
	beside := append([]string{"configmap.yaml", "deployment.yaml", "service.yaml"}, alone...)
	further := append([]string{"servernetworkpolicy.yaml", "serverpodmonitor.yaml"}, alone...)
	for _, c := range []struct{ values, want []string }{
		{values: []string{serverOnly}, want: alone},
		{values: []string{serverOnly, serverEverything}, want: further},
		{values: []string{"server: {enabled: true, config: {rules: [{name: a, key: [all], limits: [1/s]}]}}"}, want: beside},
		{values: []string{serverOnly, "server: {podDisruptionBudget: {enabled: false}}"}, want: slices.Concat(alone[:3], alone[4:])},
	} {
		objects := rendered(t, c.values...)
		if slices.Sort(c.want); !slices.Equal(names(objects), c.want) {
			t.Errorf("the rendered templates are %q, want %q", names(objects), c.want)
		}
		for name := range objects {
			serverName(t, objects, name)
		}
	}
}

// serverName parses an object of the decision service.
func serverName(t *testing.T, objects map[string]string, template string) {
	t.Helper()
	name := ""
	switch template {
	case "serverconfigmap.yaml":
		name = into[core.ConfigMap](t, objects, template).Name
	case "serverdeployment.yaml":
		name = into[apps.Deployment](t, objects, template).Name
	case "serverservice.yaml":
		name = into[core.Service](t, objects, template).Name
	case "serverpoddisruptionbudget.yaml":
		name = into[policy.PodDisruptionBudget](t, objects, template).Name
	case "servernetworkpolicy.yaml":
		name = into[networking.NetworkPolicy](t, objects, template).Name
	case "serverpodmonitor.yaml":
		name = into[monitoring.PodMonitor](t, objects, template).Name
	case "NOTES.txt", "configmap.yaml", "deployment.yaml", "service.yaml":
		return // TestObjectsAreKubernetes parses them.
	default:
		t.Errorf("no case of this test parses %s: add a case with its Kubernetes type", template)
	}
	if name != "kyc-headgate-server" {
		t.Errorf("%s: got the name %q, want kyc-headgate-server", template, name)
	}
}

// TestServerSelectors checks that the objects select the pods of the decision service, and no pod with a
// sidecar.
func TestServerSelectors(t *testing.T) {
	all := rendered(t, serverOnly, serverEverything, "deployment: {enabled: true}\nfairShare: {enabled: true}\n")
	own := into[apps.Deployment](t, all, "serverdeployment.yaml").Spec.Template.Labels
	other := into[apps.Deployment](t, all, "deployment.yaml").Spec.Template.Labels
	matches := func(selector, labels map[string]string) bool {
		for name, value := range selector {
			if labels[name] != value {
				return false
			}
		}
		return len(selector) > 0
	}
	for what, selector := range map[string]map[string]string{
		"Deployment":          into[apps.Deployment](t, all, "serverdeployment.yaml").Spec.Selector.MatchLabels,
		"Service":             into[core.Service](t, all, "serverservice.yaml").Spec.Selector,
		"PodDisruptionBudget": into[policy.PodDisruptionBudget](t, all, "serverpoddisruptionbudget.yaml").Spec.Selector.MatchLabels,
		"NetworkPolicy":       into[networking.NetworkPolicy](t, all, "servernetworkpolicy.yaml").Spec.PodSelector.MatchLabels,
		"PodMonitor":          into[monitoring.PodMonitor](t, all, "serverpodmonitor.yaml").Spec.Selector.MatchLabels,
	} {
		if !matches(selector, own) || matches(selector, other) {
			t.Errorf("the %s selects %v, want the pods with %v and none with %v", what, selector, own, other)
		}
	}
	if s := into[core.Service](t, all, "service.yaml").Spec.Selector; matches(s, own) {
		t.Errorf("the Service of the sidecars selects %v, which are labels of the decision service", s)
	}
	if got := into[policy.PodDisruptionBudget](t, all, "serverpoddisruptionbudget.yaml").Spec.MaxUnavailable.String(); got != "25%" {
		t.Errorf("maxUnavailable is %s, want 25%%", got)
	}
}

// TestServerPod checks the container, its ports and its probes.
func TestServerPod(t *testing.T) {
	s := renderedServer(t)
	ports := map[string]int32{}
	for _, p := range s.headgate.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if ports["grpc"] != 8081 || ports["http"] != 8080 || ports["health"] != 9903 || len(ports) != 3 {
		t.Errorf("got the ports %v, want grpc 8081, http 8080 and health 9903", ports)
	}
	for i, want := range []string{"grpc 8081", "http 8080"} {
		p := s.service.Spec.Ports[i]
		if got := fmt.Sprintf("%s %d", p.TargetPort.String(), p.Port); got != want {
			t.Errorf("port %d of the Service is %s, want %s", i, got, want)
		}
	}
	if want := []string{"server", "--config", "/etc/headgate/headgate.yaml"}; !slices.Equal(s.headgate.Args, want) {
		t.Errorf("the container runs %q, want %q", s.headgate.Args, want)
	}
	if v := volumeOf(t, s.pod, s.headgate, "/etc/headgate"); v.ConfigMap == nil || v.ConfigMap.Name != s.config.Name {
		t.Errorf("the container mounts %+v, want the ConfigMap %s", v.VolumeSource, s.config.Name)
	}
	sidecar := container(t, into[apps.Deployment](t, rendered(t), "deployment.yaml").Spec.Template.Spec, "headgate")
	if s.headgate.SecurityContext.String() != sidecar.SecurityContext.String() || s.headgate.Image != sidecar.Image {
		t.Errorf("got the image %s and the context %v, want those of the sidecar", s.headgate.Image, s.headgate.SecurityContext)
	}
	if r := s.headgate.ReadinessProbe; r.GRPC == nil || r.GRPC.Port != 8081 || r.GRPC.Service == nil || *r.GRPC.Service != "ratelimit" {
		t.Errorf("got the readiness probe %+v, want gRPC health of ratelimit", r)
	}
	if l := s.headgate.LivenessProbe; l.HTTPGet == nil || l.HTTPGet.Path != "/healthz" || l.HTTPGet.Port.String() != "health" {
		t.Errorf("got the liveness probe %+v, want /healthz", l)
	}
	secured := renderedServer(t, "server: {config: {server: {grpc: {tls: {cert: /keys/a, key: /keys/b}}}}, service: {headless: true}}")
	if r := secured.headgate.ReadinessProbe; r.GRPC != nil || r.HTTPGet == nil || r.HTTPGet.Path != "/readyz" {
		t.Errorf("with TLS: got the readiness probe %+v, want /readyz", r)
	}
	if p := secured.service.Spec; p.Ports[0].AppProtocol != nil || p.ClusterIP != core.ClusterIPNone {
		t.Errorf("with TLS and headless: got %+v, want no appProtocol, and no cluster address", p)
	}
}

// TestServerValues checks that each value reaches its object.
func TestServerValues(t *testing.T) {
	s := renderedServer(t, serverEverything)
	var f struct {
		file

		Store  string `json:"store"`
		Server struct {
			GRPC struct {
				Address        string `json:"address"`
				MaxConnections int    `json:"max_connections"`
			} `json:"grpc"`
			HTTP struct {
				Address string `json:"address"`
			} `json:"http"`
		} `json:"server"`
	}
	if err := yaml.Unmarshal([]byte(s.config.Data["headgate.yaml"]), &f); err != nil {
		t.Fatal(err)
	}
	got := strings.TrimSpace(fmt.Sprintln(f.Version, f.MaxMemory, f.ShutdownTimeout, f.Admin, f.Store, f.Server, f.Rules))
	const want = "1 1GiB 20s {127.0.0.1:84 [::]:83} redis://redis.bank:6379 {{:81 7} {:82}} [{all [1000000/1h]}]"
	if got != want {
		t.Errorf("headgate.yaml has\n%s, want\n%s", got, want)
	}
	if *s.deployment.Spec.Replicas != 3 || *s.pod.TerminationGracePeriodSeconds != 32 || sleepOf(s.headgate) != 7 ||
		s.headgate.Image != "mirror.example/headgate:edge" || s.headgate.Env[0].Value != "/keys/redis" ||
		s.headgate.Resources.Limits.Memory().String() != "3Gi" || s.service.Spec.Type != core.ServiceTypeNodePort || s.service.Annotations["a"] != "b" {
		t.Errorf("values did not reach %+v and %+v", s.deployment.Spec, s.service)
	}
	if s.pod.ServiceAccountName != "limits" || s.pod.NodeSelector["disk"] != "ssd" || s.pod.Volumes[1].Name != "keys" ||
		s.deployment.Spec.Template.Annotations["c"] != "d" || s.deployment.Spec.Template.Labels["team"] != "kyc" {
		t.Errorf("values did not reach the pod %+v", s.deployment.Spec.Template)
	}
	if d := renderedServer(t, "server: {replicaCount: null}").deployment; d.Spec.Replicas != nil {
		t.Errorf("with replicaCount null: got %d replicas, want none", *d.Spec.Replicas)
	}
}

// TestServerRestarts checks which changes replace the pods.
func TestServerRestarts(t *testing.T) {
	was := rendered(t, serverOnly)
	for values, restarts := range map[string]bool{
		"server: {config: {domains: {shop: {descriptors: [{key: client, limits: 4/d}]}}}}": false,
		"server: {config: {rules: [{name: a, key: [all], limits: [1/s]}]}}":                false,
		"server: {config: {identity: {trusted_proxies: [10.0.0.0/8]}}}":                    false,
		"server: {config: {store: 'redis://a:6379'}}":                                      true,
		"server: {config: {server: {rate_limit_service: {stop_increment: true}}}}":         true,
		"server: {maxMemory: 128MiB}":                                                      true,
		"server: {ports: {grpc: 82}}":                                                      true,
	} {
		is := rendered(t, serverOnly, values)
		if is["serverconfigmap.yaml"] == was["serverconfigmap.yaml"] {
			t.Errorf("%s: headgate.yaml did not change", values)
		}
		if got := is["serverdeployment.yaml"] != was["serverdeployment.yaml"]; got != restarts {
			t.Errorf("%s: got pods replaced %v, want %v", values, got, restarts)
		}
	}
}

// TestServerConfigurationIsRight checks configurations with headgate check, and that the container has
// more memory than the process takes.
func TestServerConfigurationIsRight(t *testing.T) {
	for _, values := range []string{"", serverEverything} {
		check(t, renderedServer(t, values).config.Data["headgate.yaml"])
	}
	s := renderedServer(t)
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(s.config.Data["headgate.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary(t), "check", "--config", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`memory of the server at most ([0-9.]+G)iB`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("headgate check prints no memory of the server:\n%s", out)
	}
	if most := resource.MustParse(string(found[1]) + "i"); s.headgate.Resources.Limits.Memory().Cmp(most) <= 0 {
		t.Errorf("the container has %v of memory, want more than %v, the most that the process takes", s.headgate.Resources.Limits.Memory(), &most)
	}
}

// TestServerRuns starts the binary with the chart's arguments and configuration, on free ports, and asks
// it what the probes ask.
func TestServerRuns(t *testing.T) {
	ports := freePorts(t, 4)
	s := renderedServer(t, fmt.Sprintf("server: {healthAddress: 127.0.0.1, ports: {grpc: %d, http: %d, health: %d, admin: %d}}",
		ports[0], ports[1], ports[2], ports[3]))
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "headgate.yaml"), []byte(s.config.Data["headgate.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, a := range s.headgate.Args {
		args = append(args, strings.Replace(a, "/etc/headgate", folder, 1))
	}
	command := exec.Command(binary(t), args...)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(timeout, func() { _ = command.Process.Kill() })
	defer kill.Stop()
	lines := bufio.NewScanner(stderr)
	for serving := false; !serving; {
		if !lines.Scan() {
			t.Fatal("headgate server ended before it logged serving")
		}
		var line struct {
			Msg string `json:"msg"`
		}
		serving = json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving"
	}
	for path, port := range map[string]int{"/healthz": ports[2], "/readyz": ports[2], "/metrics": ports[2], "/healthcheck": ports[1]} {
		if got := statusAt(t, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), ""); got != http.StatusOK {
			t.Errorf("GET %s gives %d, want 200", path, got)
		}
	}
	const request = `{"domain": "shop", "descriptors": [{"entries": [{"key": "client", "value": "a"}]}]}`
	for call, want := range []int{200, 200, 200, 429} {
		if got := statusAt(t, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/json", ports[1]), request); got != want {
			t.Errorf("call %d of /json gives %d, want %d", call, got, want)
		}
	}
	_ = command.Process.Signal(syscall.SIGTERM)
	for lines.Scan() { // The process must be able to write its log.
	}
	if err := command.Wait(); err != nil {
		t.Errorf("headgate server did not exit cleanly: %v", err)
	}
}

func statusAt(t *testing.T, method, url, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Timeout: timeout}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// freePorts returns different ports of loopback that nothing listens on.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	if n == 0 {
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // Later ports differ from this one.
	return append(freePorts(t, n-1), l.Addr().(*net.TCPAddr).Port)
}

// TestServerExampleOfThePage checks the release in the chart's README.
func TestServerExampleOfThePage(t *testing.T) {
	readme := string(read(t, filepath.Join(chartFolder, "README.md")))
	found := regexp.MustCompile("(?s)```yaml\n(deployment: .*?)```").FindStringSubmatch(readme)
	if found == nil {
		t.Fatal("the README has no example of the decision service")
	}
	all := rendered(t, found[1])
	check(t, into[core.ConfigMap](t, all, "serverconfigmap.yaml").Data["headgate.yaml"])
}
