package deploy

import (
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// everything enables all optional objects, and sets each value that the chart passes on.
const everything = `
replicaCount: 3
app:
  image: {repository: mirror.example/kyc, tag: "1.2", digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
  protocol: h2c
  command: [/kyc]
  args: [--port, "9000"]
  env: [{name: A, value: b}]
  envFrom: [{secretRef: {name: kyc}}]
  resources: {limits: {memory: 1Gi}}
  startupProbe: {httpGet: {path: /started, port: app}}
  livenessProbe: {httpGet: {path: /alive, port: app}}
  readinessProbe: {httpGet: {path: /ready, port: app}}
  securityContext: {readOnlyRootFilesystem: true}
  volumeMounts: [{name: keys, mountPath: /keys}]
fairShare:
  cycle: 10s
  weights: {home-loan: 2, "44": 1000000}
  cost: header:X-Cost
  maxCost: 20
  countOnce: header:Idempotency-Key
  anonymous: unnamed
rules:
  - {name: search, match: {path: /search/*}, key: [ip], limits: ["1000000/1h"], on_exceed: {action: delay, max_wait: 1s, max_waiters: 1000000}}
config:
  identity: {trusted_proxies: [10.0.0.0/8]}
  proxy: {header_style: x-ratelimit}
  log: {access: json}
headgate:
  image: {repository: mirror.example/headgate, tag: edge}
  healthAddress: "::"
  env: [{name: GOMEMLIMIT, value: 200MiB}]
  volumeMounts: [{name: keys, mountPath: /keys}]
service: {type: NodePort, port: 8443, appProtocol: kubernetes.io/h2c, annotations: {a: b}}
networkPolicy: {enabled: true}
podMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
dashboard: {enabled: true, annotations: {grafana_folder: Headgate}}
imagePullSecrets: [{name: mirror}]
serviceAccountName: kyc
podAnnotations: {c: d}
podLabels: {team: kyc}
podSecurityContext: {fsGroup: 1}
volumes: [{name: keys, secret: {secretName: keys}}]
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
`

// TestObjectsAreKubernetes checks that every object has only fields of its Kubernetes type.
func TestObjectsAreKubernetes(t *testing.T) {
	least := []string{"NOTES.txt", "configmap.yaml", "deployment.yaml", "service.yaml"}
	all := append([]string{"dashboard.yaml", "networkpolicy.yaml", "podmonitor.yaml", "prometheusrule.yaml"}, least...)
	slices.Sort(all)
	for values, want := range map[string][]string{"": least, everything: all} {
		objects := rendered(t, values)
		if got := names(objects); !slices.Equal(got, want) {
			t.Errorf("the rendered templates are %q, want %q", got, want)
		}
		for name := range objects {
			switch name {
			case "configmap.yaml", "dashboard.yaml":
				named(t, name, into[core.ConfigMap](t, objects, name).Name)
			case "deployment.yaml":
				named(t, name, into[apps.Deployment](t, objects, name).Name)
			case "service.yaml":
				named(t, name, into[core.Service](t, objects, name).Name)
			case "networkpolicy.yaml":
				named(t, name, into[networking.NetworkPolicy](t, objects, name).Name)
			case "podmonitor.yaml":
				named(t, name, into[monitoring.PodMonitor](t, objects, name).Name)
			case "prometheusrule.yaml":
				named(t, name, into[monitoring.PrometheusRule](t, objects, name).Name)
			case "NOTES.txt":
			default:
				t.Errorf("no case of this test parses %s: add a case with its Kubernetes type", name)
			}
		}
	}
}

func named(t *testing.T, template, name string) {
	t.Helper()
	if !strings.HasPrefix(name, "kyc-headgate") {
		t.Errorf("%s: got the name %q, want the prefix kyc-headgate", template, name)
	}
}

// container returns a container of a pod by name.
func container(t *testing.T, pod core.PodSpec, name string) core.Container {
	t.Helper()
	at := slices.IndexFunc(pod.Containers, func(c core.Container) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("the pod has no container %s", name)
	}
	return pod.Containers[at]
}

// TestWayIn checks that the Service routes to Headgate, Headgate forwards to the service, and no
// client bypasses Headgate.
func TestWayIn(t *testing.T) {
	objects := rendered(t, "networkPolicy: {enabled: true}\npodMonitor: {enabled: true}\n")
	deployment := into[apps.Deployment](t, objects, "deployment.yaml")
	ports := map[string]int32{}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			if _, twice := ports[p.Name]; twice {
				t.Errorf("two ports of the pod have the name %s", p.Name)
			}
			ports[p.Name] = p.ContainerPort
		}
	}
	if ports["proxy"] != 8080 || ports["health"] != 9903 || ports["app"] != 9000 || len(ports) != 3 {
		t.Errorf("got the ports %v, want proxy 8080, health 9903 and app 9000", ports)
	}
	service := into[core.Service](t, objects, "service.yaml")
	if p := service.Spec.Ports; len(p) != 1 || p[0].TargetPort.String() != "proxy" || p[0].Port != 80 {
		t.Errorf("got the Service ports %+v, want port 80 with the target proxy", p)
	}
	labels := deployment.Spec.Template.Labels
	for what, selector := range map[string]map[string]string{
		"Deployment":    deployment.Spec.Selector.MatchLabels,
		"Service":       service.Spec.Selector,
		"NetworkPolicy": into[networking.NetworkPolicy](t, objects, "networkpolicy.yaml").Spec.PodSelector.MatchLabels,
		"PodMonitor":    into[monitoring.PodMonitor](t, objects, "podmonitor.yaml").Spec.Selector.MatchLabels,
	} {
		if len(selector) == 0 {
			t.Errorf("the selector of the %s is empty, so it selects every pod", what)
		}
		for label, value := range selector {
			if labels[label] != value {
				t.Errorf("%s: the selector %s=%s does not match the pod labels %v", what, label, value, labels)
			}
		}
	}
	for _, rule := range into[networking.NetworkPolicy](t, objects, "networkpolicy.yaml").Spec.Ingress {
		for _, p := range rule.Ports {
			if p.Port.String() != "proxy" && p.Port.String() != "health" {
				t.Errorf("the NetworkPolicy opens the port %s, want only proxy and health", p.Port)
			}
		}
	}
}

// TestSidecarIsConfined checks the sidecar's security context.
func TestSidecarIsConfined(t *testing.T) {
	pod := into[apps.Deployment](t, rendered(t), "deployment.yaml").Spec.Template.Spec
	c := container(t, pod, "headgate")
	s := c.SecurityContext
	switch {
	case s == nil:
		t.Fatal("the sidecar has no securityContext")
	case s.RunAsNonRoot == nil || !*s.RunAsNonRoot, s.RunAsUser == nil || *s.RunAsUser == 0:
		t.Error("the sidecar may run as root")
	case s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
		t.Error("the root file system of the sidecar is writable")
	case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, s.Privileged != nil:
		t.Error("the sidecar may gain privileges")
	case s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0:
		t.Errorf("got the capabilities %+v of the sidecar, want drop ALL", s.Capabilities)
	case s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault:
		t.Error("the sidecar has no seccomp profile RuntimeDefault")
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("got the resources %+v of the sidecar, want a memory limit and a CPU request", c.Resources)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" ||
		c.LivenessProbe.HTTPGet.Port.String() != "health" || c.ReadinessProbe.HTTPGet.Port.String() != "health" {
		t.Errorf("got the probes %+v and %+v, want /healthz and /readyz on the port health", c.LivenessProbe, c.ReadinessProbe)
	}
}

// TestStopInOrder checks the order of a pod's stop: Headgate serves while balancers remove the pod,
// and then drains. The service runs until Headgate has drained.
func TestStopInOrder(t *testing.T) {
	for _, c := range []struct {
		values                string
		headgate, app, within int64
	}{
		{"", 5, 15, 45},
		{"headgate: {preStopSeconds: 20, shutdownSeconds: 60}\napp: {shutdownSeconds: 100}\n", 20, 80, 180},
		{"headgate: {preStopSeconds: 0, shutdownSeconds: 0}\n", 0, 0, 30},
		{"app: {lifecycle: {preStop: {exec: {command: [drain]}}}}\n", 5, 0, 45},
	} {
		pod := into[apps.Deployment](t, rendered(t, c.values), "deployment.yaml").Spec.Template.Spec
		if got := sleepOf(container(t, pod, "headgate")); got != c.headgate {
			t.Errorf("with %q: Headgate serves for %d s after the stop signal, want %d s", c.values, got, c.headgate)
		}
		if got := sleepOf(container(t, pod, "app")); got != c.app {
			t.Errorf("with %q: the service waits %d s, want %d s", c.values, got, c.app)
		}
		if got := *pod.TerminationGracePeriodSeconds; got != c.within {
			t.Errorf("with %q: the pod is killed after %d s, want %d s", c.values, got, c.within)
		}
	}
}

func sleepOf(c core.Container) int64 {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil {
		return 0
	}
	return c.Lifecycle.PreStop.Sleep.Seconds
}

// TestAppContainer checks that values reach the service's container unchanged.
func TestAppContainer(t *testing.T) {
	deployment := into[apps.Deployment](t, rendered(t, everything), "deployment.yaml")
	c := container(t, deployment.Spec.Template.Spec, "app")
	if *deployment.Spec.Replicas != 3 || !strings.HasSuffix(c.Image, "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef") {
		t.Errorf("got %d replicas of the image %s, want 3 replicas and an image digest", *deployment.Spec.Replicas, c.Image)
	}
	if c.Env[0].Value != "b" || c.EnvFrom[0].SecretRef.Name != "kyc" || c.ReadinessProbe == nil || c.Resources.Limits.Memory().String() != "1Gi" {
		t.Errorf("the values did not reach the container: %+v", c)
	}
	autoscaled := into[apps.Deployment](t, rendered(t, "replicaCount: null\n"), "deployment.yaml")
	if autoscaled.Spec.Replicas != nil {
		t.Errorf("with replicaCount null: got %d replicas, want none, because a number overrides the autoscaler", *autoscaled.Spec.Replicas)
	}
	if image := container(t, autoscaled.Spec.Template.Spec, "headgate").Image; image != "headgate:0.1.0" {
		t.Errorf("without a tag: got the sidecar image %s, want headgate:0.1.0", image)
	}
}
