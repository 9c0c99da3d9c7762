package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// configuration returns the headgate.yaml for the values.
func configuration(t *testing.T, texts ...string) string {
	t.Helper()
	text, found := into[core.ConfigMap](t, rendered(t, texts...), "configmap.yaml").Data["headgate.yaml"]
	if !found {
		t.Fatal("the ConfigMap has no headgate.yaml")
	}
	return text
}

// TestConfigurationIsRight checks the chart's configurations with headgate check.
func TestConfigurationIsRight(t *testing.T) {
	for name, values := range map[string]string{
		"required values only":    "",
		"all values":              everything,
		"shadow":                  "fairShare: {mode: shadow}",
		"rules only":              "fairShare: {enabled: false}\nrules: [{name: a, key: [ip], limits: [5/s]}]",
		"largest numbers":         "fairShare: {capacity: 1099511627776, weights: {a: 1000000}, forgetAfter: 1000000, maxClients: 10000, newClientsPerCycle: 1000, cost: 1000000}",
		"costs":                   "fairShare: {capacity: 1099511627776, cost: header:X-Cost, maxCost: 1099511627776}",
		"other enum values":       "fairShare: {division: max_min, reclaim: next_cycle, reservation: 100%, anonymous: nobody, client: 'jwt:sub'}\nconfig: {identity: {jwt: {keys: jwks.json}}}",
		"names with YAML meaning": `fairShare: {weights: {"no": 1, "1e3": 2, "a: b": 3, "~": 4}}`,
		"zero values":             "fairShare: {capacity: 0, newClientsPerCycle: 0}",
		"https":                   "app: {protocol: https}\nconfig: {proxy: {upstream_tls: {server_name: kyc}}}",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "other enum values" {
				values = strings.Replace(values, "jwks.json", keys(t), 1)
			}
			if name == "names with YAML meaning" {
				values = strings.Replace(values, "fairShare: {", `fairShare: {anonymous: "on", `, 1)
			}
			check(t, configuration(t, values))
		})
	}
}

// keys writes a JWKS file with the example key of RFC 8037, and returns its path.
func keys(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	const text = `{"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func check(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), binary(t), "check", "--config", path).CombinedOutput(); err != nil {
		t.Errorf("headgate check failed: %v\n%s\nThe configuration is:\n%s", err, out, text)
	}
}

// file contains the fields of headgate.yaml that tests read.
type file struct {
	Version         int    `json:"version"`
	MaxMemory       string `json:"max_memory"`
	ShutdownTimeout string `json:"shutdown_timeout"`
	Rules           []struct {
		Name   string   `json:"name"`
		Limits []string `json:"limits"`
	} `json:"rules"`
	Identity struct {
		TrustedProxies []string `json:"trusted_proxies"`
	} `json:"identity"`
	FairShare map[string]any `json:"fair_share"`
	Proxy     struct {
		Listen      string `json:"listen"`
		Upstream    string `json:"upstream"`
		HeaderStyle string `json:"header_style"`
	} `json:"proxy"`
	Admin struct {
		Listen string `json:"listen"`
		Health string `json:"health"`
	} `json:"admin"`
}

func parsed(t *testing.T, texts ...string) file {
	t.Helper()
	var f file
	if err := yaml.Unmarshal([]byte(configuration(t, texts...)), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFairShareReachesTheConfiguration checks that each value of fairShare sets its setting.
func TestFairShareReachesTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		values, setting string
		want            any
	}{
		{"capacity: 400", "capacity", 400.0},
		{"capacity: 20000000", "capacity", 20_000_000.0},
		{"cycle: 10s", "cycle", "10s"},
		{"mode: shadow", "mode", "shadow"},
		{"mode: enforce", "mode", "enforce"},
		{"client: mtls_subject", "client", "mtls_subject"},
		{"anonymous: unnamed", "anonymous", "unnamed"},
		{"reservation: 25%", "reservation", "25%"},
		{"division: max_min", "division", "max_min"},
		{"reclaim: next_cycle", "reclaim", "next_cycle"},
		{"newClientsPerCycle: 0", "new_clients_per_cycle", 0.0},
		{"forgetAfter: 7", "forget_after", 7.0},
		{"maxClients: 77", "max_clients", 77.0},
		{"cost: 3", "cost", 3.0},
		{"cost: header:X-Cost", "cost", "header:X-Cost"},
		{"maxCost: 9", "max_cost", 9.0},
		{"countOnce: header:X-Try", "count_once", "header:X-Try"},
	} {
		if got := parsed(t, "fairShare: {"+c.values+"}").FairShare[c.setting]; got != c.want {
			t.Errorf("with %s: got %s = %v, want %v", c.values, c.setting, got, c.want)
		}
	}
	weights, _ := parsed(t, "fairShare: {weights: {home-loan: 2}}").FairShare["weights"].(map[string]any)
	if weights["home-loan"] != 2.0 {
		t.Errorf("fair_share.weights: got %v, want home-loan: 2", weights)
	}
	if f := parsed(t, "fairShare: {enabled: false}").FairShare; f != nil {
		t.Errorf("with fairShare.enabled false: got fair_share %v, want no section", f)
	}
}

// TestOtherValuesReachTheConfiguration checks the other values, and the settings that the chart
// sets itself.
func TestOtherValuesReachTheConfiguration(t *testing.T) {
	f := parsed(t, everything, "headgate: {shutdownSeconds: 7, maxMemory: 1GiB, ports: {proxy: 81, health: 82, admin: 83}}\napp: {port: 84}")
	if f.Version != 1 || f.MaxMemory != "1GiB" || f.ShutdownTimeout != "7s" {
		t.Errorf("got version %d, max_memory %s, shutdown_timeout %s, want 1, 1GiB, 7s", f.Version, f.MaxMemory, f.ShutdownTimeout)
	}
	if f.Proxy.Listen != ":81" || f.Proxy.Upstream != "h2c://127.0.0.1:84" || f.Proxy.HeaderStyle != "x-ratelimit" {
		t.Errorf("proxy: got %+v, want listen :81, upstream h2c://127.0.0.1:84, header_style x-ratelimit", f.Proxy)
	}
	if f.Admin.Listen != "127.0.0.1:83" || f.Admin.Health != "[::]:82" {
		t.Errorf("admin: got %+v, want listen 127.0.0.1:83, health [::]:82", f.Admin)
	}
	if len(f.Rules) != 1 || f.Rules[0].Limits[0] != "1000000/1h" || len(f.Identity.TrustedProxies) != 1 {
		t.Errorf("got rules %+v and identity %+v, want 1 rule of 1000000/1h and 1 trusted proxy", f.Rules, f.Identity)
	}
}

// TestNoRestartForShares checks that a change of shares, rules or identity changes the ConfigMap,
// but no pod. A change that a reload cannot make must replace the pods.
func TestNoRestartForShares(t *testing.T) {
	was := rendered(t)
	for values, restarts := range map[string]bool{
		"fairShare: {mode: shadow}":                           false,
		"fairShare: {capacity: 401}":                          false,
		"fairShare: {cycle: 2s}":                              false,
		"fairShare: {weights: {a: 2}}":                        false,
		"fairShare: {enabled: false}":                         false,
		"rules: [{name: a, key: [ip], limits: [5/s]}]":        false,
		"config: {identity: {trusted_proxies: [10.0.0.0/8]}}": false,
		"config: {log: {access: json}}":                       true,
		"config: {proxy: {max_connections: 7}}":               true,
		"headgate: {maxMemory: 128MiB}":                       true,
		"headgate: {ports: {health: 9904}}":                   true,
	} {
		is := rendered(t, values)
		if is["configmap.yaml"] == was["configmap.yaml"] {
			t.Errorf("%s: headgate.yaml did not change", values)
		}
		if got := is["deployment.yaml"] != was["deployment.yaml"]; got != restarts {
			t.Errorf("%s: got pods replaced %v, want %v", values, got, restarts)
		}
	}
}
