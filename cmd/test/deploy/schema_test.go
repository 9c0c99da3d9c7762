package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

// TestSchemaRefuses checks that rendering fails for invalid values, with the place of the fault.
func TestSchemaRefuses(t *testing.T) {
	c := loadChart(t)
	for _, values := range []string{
		// Unknown names at any level.
		"fairshare: {}", "fairShare: {capcity: 1}", "app: {ports: 1}", "headgate: {image: {name: x}}", "headgate: {ports: {http: 1}}",
		"service: {targetPort: 1}", "deployment: {replicas: 1}", "podMonitor: {path: /}", "dashboard: {folder: x}", "networkPolicy: {ports: []}",
		// Capacity and cycle.
		`fairShare: {capacity: "400"}`, "fairShare: {capacity: -1}", "fairShare: {capacity: 0.5}", "fairShare: {capacity: 1099511627777}",
		"fairShare: {capacity: 400/s}", "fairShare: {cycle: 10}", "fairShare: {cycle: 10 s}", "fairShare: {cycle: -1s}", `fairShare: {cycle: ""}`,
		"fairShare: {cycle: 1w}",
		// Switches with strings, and enums with booleans.
		"fairShare: {mode: true}", "fairShare: {mode: passthrough}", "fairShare: {mode: off}", "fairShare: {enabled: 1}", "prometheusRule: {enabled: 1}",
		// Percentages.
		"fairShare: {reservation: 10}", `fairShare: {reservation: "10"}`, "fairShare: {reservation: 101%}", "fairShare: {reservation: -1%}",
		"fairShare: {reservation: 0.1%}", "fairShare: {reservation: 10 %}",
		// Enums and key fields.
		"fairShare: {division: fair}", "fairShare: {division: max-min}", "fairShare: {reclaim: now}", "fairShare: {client: all}",
		"fairShare: {client: X-Client-Id}", "fairShare: {client: header}", "fairShare: {client: [ip]}", `fairShare: {anonymous: ""}`,
		"fairShare: {anonymous: true}",
		// Clients.
		"fairShare: {weights: {home-loan: 0}}", "fairShare: {weights: {home-loan: 1.5}}", "fairShare: {weights: {home-loan: 1000001}}",
		`fairShare: {weights: {"": 1}}`, "fairShare: {weights: [home-loan]}", "fairShare: {newClientsPerCycle: -1}",
		"fairShare: {newClientsPerCycle: 1001}",
		"fairShare: {forgetAfter: 0}", "fairShare: {forgetAfter: 30s}", "fairShare: {maxClients: 0}", "fairShare: {maxClients: 10001}",
		"fairShare: {cost: 0}", "fairShare: {cost: X-Cost}", "fairShare: {maxCost: 0}", "fairShare: {countOnce: true}",
		"fairShare: {countOnce: X-Request-Id}",
		// Rules, and settings that other values set.
		"rules: {name: a}", "rules: [{name: a}]", "rules: [a]", "config: []", "config: {version: 1}", "config: {rules: []}",
		"config: {admin: {}}", "config: {shutdown_timeout: 1s}", "config: {max_memory: 1GiB}", "config: {proxy: {listen: ':1'}}",
		"config: {proxy: {upstream: 'http://a'}}", "config: {fair_share: {}}", "config: {proxy: {fair_share: {}}}", "config: {proxy: on}",
		// Ports, names and images.
		"app: {port: 0}", "app: {port: 65536}", "app: {port: http}", "app: {protocol: grpc}", "app: {name: headgate}", "app: {name: My_App}",
		"app: {image: {pullPolicy: Sometimes}}", "app: {image: {digest: abc}}", "app: {image: {tag: 1.2}}", "app: {shutdownSeconds: 0}",
		"app: {env: {A: b}}", "app: {command: run}", "headgate: {ports: {proxy: 0}}", "headgate: {ports: {health: 70000}}",
		"headgate: {maxMemory: 64Mi}", "headgate: {maxMemory: 64}", "headgate: {preStopSeconds: -1}", "headgate: {preStopSeconds: 5s}",
		"headgate: {shutdownSeconds: 601}", "headgate: {healthAddress: localhost}", "service: {type: ExternalName}", "service: {port: 0}",
		// The decision service.
		"server: {enabled: 1}", "server: {image: {}}", "server: {replicaCount: 0}", "server: {config: []}", "server: {config: {version: 1}}",
		"server: {config: {admin: {}}}", "server: {config: {proxy: {}}}", "server: {config: {shutdown_timeout: 1s}}",
		"server: {config: {max_memory: 1GiB}}", "server: {config: {server: {grpc: ':1'}}}", "server: {config: {server: {grpc: {address: ':1'}}}}",
		"server: {config: {server: {http: {address: ':1'}}}}", "server: {ports: {grpc: 0}}", "server: {ports: {proxy: 1}}",
		"server: {healthAddress: localhost}", "server: {maxMemory: 64}", "server: {preStopSeconds: -1}", "server: {shutdownSeconds: 601}",
		"server: {service: {type: ExternalName}}", "server: {service: {headless: yes please}}", "server: {podDisruptionBudget: {maxUnavailable: -1}}",
		"server: {podDisruptionBudget: {maxUnavailable: one}}",
		"replicaCount: 0", `replicaCount: "2"`, "podMonitor: {interval: 15}", "podLabels: {a: 1}", "dashboard: {labels: {grafana_dashboard: 1}}",
	} {
		if _, err := render(c, valuesOf(t, values)); err == nil || !strings.Contains(err.Error(), "at '") {
			t.Errorf("%s: got %v, want an error with the place of the fault", values, err)
		}
	}
}

// TestMissingValues checks that the error for a missing required value says how to set it.
func TestMissingValues(t *testing.T) {
	for values, want := range map[string]string{
		"app: {image: {repository: kyc}}": "fairShare.capacity is missing",
		"fairShare: {capacity: 1}":        "app.image.repository is missing",
		"fairShare: {enabled: false}\ndeployment: {enabled: false}\nserver: {enabled: true}":  "server.config.domains is missing",
		"fairShare: {capacity: 1}\ndeployment: {enabled: false}\npodMonitor: {enabled: true}": "podMonitor.matchLabels is missing",
	} {
		stated := map[string]any{}
		if err := yaml.Unmarshal([]byte(values), &stated); err != nil {
			t.Fatal(err)
		}
		if _, err := render(loadChart(t), stated); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
}

// TestLint checks that helm lint finds no fault.
func TestLint(t *testing.T) {
	for _, values := range []string{"", everything} {
		for _, m := range lint.RunAll(chartFolder, valuesOf(t, values), "bank").Messages {
			if m.Severity != support.InfoSev { // The only expected message is "icon is recommended".
				t.Error(m)
			}
		}
	}
}

// stated lists the values without a default.
var stated = []string{"fairShare.capacity", "fairShare.cost", "fairShare.countOnce", "fairShare.maxCost"}

// TestValuesAreKnown checks that the schema has exactly the values of values.yaml, and that
// values.yaml and the README explain each value.
func TestValuesAreKnown(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(read(t, filepath.Join(chartFolder, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	text := read(t, filepath.Join(chartFolder, "values.yaml"))
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	given := append(leaves("", values), stated...)
	slices.Sort(given)
	if known := described("", schema, schema); !slices.Equal(known, given) {
		t.Errorf("got the values\n%q\nin values.schema.json, want\n%q\nas in values.yaml", known, given)
	}
	readme := string(read(t, filepath.Join(chartFolder, "README.md")))
	for _, name := range given {
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("README.md does not explain `%s`", name)
		}
	}
	for _, name := range stated {
		if !strings.Contains(string(text), "# "+name[strings.LastIndexByte(name, '.')+1:]+":") {
			t.Errorf("values.yaml has no commented line for %s", name)
		}
	}
	// The README's table must not have a value that does not exist.
	for _, found := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)`").FindAllStringSubmatch(readme, -1) {
		if !slices.Contains(given, found[1]) && !slices.ContainsFunc(given, func(n string) bool { return strings.HasPrefix(n, found[1]+".") }) {
			t.Errorf("README.md explains %s, which is not a value of the chart", found[1])
		}
	}
}

// opaque lists the values that the chart passes to Kubernetes unchanged.
var opaque = []string{"headgate.resources", "headgate.securityContext", "server.resources", "dashboard.labels"}

// leaves lists the names of the values that are not maps, and of opaque values.
func leaves(prefix string, values map[string]any) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		inner, isMap := values[name].(map[string]any)
		if path := prefix + name; isMap && len(inner) > 0 && !slices.Contains(opaque, path) {
			all = append(all, leaves(path+".", inner)...)
		} else {
			all = append(all, path)
		}
	}
	return all
}

// described lists the values of a schema, without Helm's own values.
func described(prefix string, schema, root map[string]any) []string {
	if ref, found := schema["$ref"].(string); found {
		schema = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	properties, _ := schema["properties"].(map[string]any)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inner, isSchema := properties[name].(map[string]any)
		deeper := []string{}
		if isSchema && !slices.Contains([]string{"config", "server.config"}, prefix+name) {
			deeper = described(prefix+name+".", inner, root)
		}
		switch {
		case prefix+name == "global":
		case len(deeper) > 0:
			all = append(all, deeper...)
		default:
			all = append(all, prefix+name)
		}
	}
	slices.Sort(all)
	return all
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
