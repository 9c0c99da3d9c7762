package app

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/headgate/headgate/internal/config"
)

// sections are parts of a configuration, each of which is valid for a command alone, or with parts that others have. The settings of a
// part are by their paths, and a path with + adds an entry to a list.
func sections() map[string]map[string]string {
	zeros := strings.Repeat("0", 64)
	return map[string]map[string]string{
		"nothing":         {},
		"limit":           {"rules+": `{"name": "limit", "key": ["ip"], "limits": ["5/s"]}`},
		"calendar":        {"rules+": `{"name": "calendar", "key": ["ip"], "limits": ["5/month"], "algorithm": "fixed_window"}`},
		"ban":             {"rules+": `{"name": "ban", "key": ["ip"], "limits": ["9/m"], "ban": {"after": "10/1m", "for": "1h"}}`},
		"in flight":       {"rules+": `{"name": "slots", "key": ["ip"], "in_flight": 3}`},
		"count":           {"rules+": `{"name": "counts", "key": ["ip"], "limits": ["5/s"], "count": {"status": [404]}}`},
		"settle":          {"rules+": `{"name": "settles", "key": ["ip"], "limits": ["5/s"], "settle": "header:X-Units"}`},
		"prefetch":        {"store": `"redis://127.0.0.1:1"`, "rules+": `{"name": "ahead", "key": ["ip"], "limits": ["50/1m"], "prefetch": {"hold": "1s", "batch": 5}}`},
		"delay":           {"rules+": `{"name": "delays", "key": ["ip"], "limits": ["5/s"], "on_exceed": {"action": "delay", "max_wait": "1s"}}`},
		"leaky":           {"rules+": `{"name": "leaks", "key": ["ip"], "limits": ["5/s"], "algorithm": "leaky_bucket"}`},
		"descriptor":      {"rules+": `{"name": "tenants", "key": ["descriptor:tenant"], "limits": ["5/s"]}`},
		"query":           {"rules+": `{"name": "queries", "match": {"domain": "d"}, "key": ["descriptor:tenant"], "limits": ["5/s"]}`},
		"subject":         {"rules+": `{"name": "subjects", "key": ["mtls_subject"], "limits": ["5/s"]}`},
		"claim":           {"identity.jwt": `{"keys": "KEYS"}`, "rules+": `{"name": "claims", "key": ["jwt:sub"], "limits": ["5/s"]}`},
		"local":           {"store": `"redis://127.0.0.1:1"`, "local_share": `"25%"`, "rules+": `{"name": "local", "key": ["ip"], "limits": ["5/s"], "fallback": "local"}`},
		"error":           {"rules+": `{"name": "errors", "key": ["ip"], "limits": ["5/s"], "fallback": "error"}`},
		"quota":           {"rules+": `{"name": "api", "key": ["header:X-A"], "quota": "calls"}`, "plans.free": `{"quotas": {"calls": [{"limit": "5/30d"}]}}`, "default_plan": `"free"`},
		"lease":           {"lease.servers": `["127.0.0.1:1"]`, "rules+": `{"name": "leased", "key": ["ip"], "lease": "db", "fallback": "allow"}`},
		"domain":          {"domains.shop": `{"descriptors": [{"key": "k", "limits": "5/h"}]}`},
		"proxy":           {"proxy.upstream": `"http://127.0.0.1:9"`, "proxy.listen": `"127.0.0.1:0"`},
		"fast":            {"proxy.data_plane": `"fast"`, "proxy.upstream": `"http://127.0.0.1:9"`, "proxy.listen": `"127.0.0.1:0"`},
		"nethttp":         {"proxy.data_plane": `"standard"`, "proxy.upstream": `"http://127.0.0.1:9"`, "proxy.listen": `"127.0.0.1:0"`},
		"proxy protocol":  {"proxy.proxy_protocol": `["10.0.0.0/8"]`, "proxy.upstream": `"http://127.0.0.1:9"`, "proxy.listen": `"127.0.0.1:0"`},
		"grpc":            {"server.grpc": `"127.0.0.1:0"`},
		"http":            {"server.http": `"127.0.0.1:0"`},
		"resp":            {"server.resp": `"127.0.0.1:0"`},
		"grpc of callers": {"server.grpc": `{"address": "127.0.0.1:0", "auth": "token"}`, "server.callers": `[{"name": "a", "tokens": ["sha256:` + zeros + `"], "scopes": ["decide", "lease", "administer"]}]`},
		"callers":         {"server.callers": `[{"name": "a", "tokens": ["sha256:` + zeros + `"], "scopes": ["decide", "lease", "administer"]}]`},
		"limits":          {"server.limits": `{"address": "1000/s"}`},
		"statsd":          {"server.statsd": `[{"address": "127.0.0.1:9"}]`},
		"unhealthy":       {"store": `"redis://127.0.0.1:1"`, "server.unhealthy_without_store": `true`},
		"service":         {"server.rate_limit_service": `{"response_headers": true}`},
		"admin":           {"admin.listen": `"127.0.0.1:0"`, "admin.health": `"127.0.0.1:0"`},
		"admin auth":      {"admin.auth": `"token"`, "server.callers": `[{"name": "a", "tokens": ["sha256:` + zeros + `"], "scopes": ["decide", "lease", "administer"]}]`},
		"no admin":        {"admin.listen": `"off"`},
		"fair share":      {"fair_share.capacity": `10`, "fair_share.client": `"ip"`},
		"fair tenants":    {"fair_share.capacity": `10`, "fair_share.client": `"descriptor:tenant"`},
		"throttle":        {"throttle.concurrency": `5`},
		"tenants":         {"throttle.concurrency": `5`, "throttle.tenant": `"header:X-Tenant"`},
		"jwt":             {"identity.jwt": `{"keys": "KEYS"}`},
		"trusted":         {"identity.trusted_proxies": `["192.0.2.0/24"]`},
		"paths":           {"paths": `{"ignore_case": true}`},
		"redis":           {"store": `"redis://127.0.0.1:1"`},
		"memcached":       {"store": `"memcached://127.0.0.1:1"`},
		"memory":          {"store": `"memory"`},
		"counters":        {"store": `"memcached://127.0.0.1:1"`, "memcached_counters": `true`},
		"second":          {"store": `"redis://127.0.0.1:1"`, "store_per_second": `"redis://127.0.0.1:2"`},
		"namespace":       {"namespace": `"blue"`},
		"evaluate":        {"evaluate": `"independent"`},
		"metering":        {"metering": `{"journal": "FOLDER/journal", "lines": {"folder": "FOLDER/lines"}}`},
		"etcd":            {"source.etcd": `{"endpoints": ["http://127.0.0.1:1"]}`},
		"source http":     {"source.http": `{"url": "http://127.0.0.1:1/rules.yaml"}`},
		"postgres":        {"source.postgres": `{"hosts": ["127.0.0.1:1"], "user": "headgate", "database": "headgate"}`},
		"without state":   {"source.http": `{"url": "http://127.0.0.1:1/rules.yaml"}`, "source.without_state": `"allow"`},
		"cache":           {"source.http": `{"url": "http://127.0.0.1:1/rules.yaml"}`, "source.cache": `"FOLDER-cache"`},
		"lease of itself": {"lease.resources": `[{"match": "*", "capacity": "5/s"}]`, "rules+": `{"name": "leased", "key": ["ip"], "lease": "db", "fallback": "allow"}`},
		"lease servers":   {"lease.servers": `["127.0.0.1:1"]`},
		"resources":       {"lease.resources": `[{"match": "*", "capacity": "5/s"}]`},
		"election":        {"lease.election": `{"etcd": ["127.0.0.1:1"], "group": "eu", "address": "127.0.0.1:2"}`, "lease.resources": `[{"match": "*", "capacity": "5/s"}]`},
		"elected":         {"lease.election": `{"etcd": ["127.0.0.1:1"], "group": "eu", "address": "127.0.0.1:2", "servers": ["127.0.0.1:2", "127.0.0.1:3"]}`, "lease.resources": `[{"match": "*", "capacity": "5/s"}]`, "rules+": `{"name": "leased", "key": ["ip"], "lease": "db", "fallback": "allow"}`},
		"elected others":  {"lease.election": `{"etcd": ["127.0.0.1:1"], "group": "eu", "servers": ["127.0.0.1:2", "127.0.0.1:3"]}`, "lease.resources": `[{"match": "*", "capacity": "5/s"}]`, "rules+": `{"name": "leased", "key": ["ip"], "lease": "db", "fallback": "allow"}`},
		"lease limits":    {"lease.limits": `{"etcd": ["127.0.0.1:1"]}`, "lease.resources": `[{"match": "*", "capacity": "5/s"}]`},
		"holders":         {"lease.holders": `{"a": {"weight": 2}}`, "lease.resources": `[{"match": "*", "capacity": "5/s"}]`, "server.grpc": `{"address": "127.0.0.1:0", "auth": "token"}`, "server.callers": `[{"name": "a", "tokens": ["sha256:` + zeros + `"], "scopes": ["decide", "lease", "administer"]}]`},
		"log":             {"log": `{"access": "json", "keys": "hash"}`},
		"envoy":           {"envoy": `{"month": "calendar"}`},
	}
}

// contextOf has the settings without which a part says nothing.
func contextOf(command string) map[string]string {
	if command == "proxy" {
		return map[string]string{"proxy.upstream": `"http://127.0.0.1:9"`, "proxy.listen": `"127.0.0.1:0"`}
	}
	return map[string]string{"server.grpc": `"127.0.0.1:0"`, "server.http": `"off"`}
}

// assemble writes a configuration. Later settings replace earlier ones.
func assemble(t *testing.T, folder string, parts ...map[string]string) []byte {
	t.Helper()
	root := map[string]any{"version": 1, "max_memory": "1MiB", "shutdown_timeout": "1s", "rules": []any{}, "admin": map[string]any{"listen": "127.0.0.1:0", "health": "127.0.0.1:0"}}
	for _, part := range parts {
		for _, path := range slices.Sorted(maps.Keys(part)) {
			var value any
			if err := json.Unmarshal([]byte(strings.NewReplacer("FOLDER", folder, "KEYS", filepath.Join(filepath.Dir(folder), "keys.json")).Replace(part[path])), &value); err != nil {
				t.Fatal(path, err)
			}
			if list, adds := strings.CutSuffix(path, "+"); adds {
				root[list] = append(root[list].([]any), value)
				continue
			}
			names, at := strings.Split(path, "."), root
			for _, name := range names[:len(names)-1] {
				if _, known := at[name].(map[string]any); !known {
					at[name] = map[string]any{}
				}
				at = at[name].(map[string]any)
			}
			at[names[len(names)-1]] = value
		}
	}
	text, err := json.Marshal(root, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSectionsStart crosses sections: a configuration that check accepts starts, and what a start refuses, check refuses with a place.
// Of all pairs it has every twelfth: TestSoakSectionsStart has all.
func TestSectionsStart(t *testing.T) {
	t.Parallel()
	crossSections(t, 12)
}

// crossSections crosses each section with none, and every so many pairs. A start with a source waits for it, so such a configuration is only checked.
func crossSections(t *testing.T, every int) {
	t.Helper()
	all, folder := sections(), t.TempDir()
	const keys = `{"keys": [{"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`
	if err := os.WriteFile(filepath.Join(folder, "keys.json"), []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	names, valid, started := slices.Sorted(maps.Keys(all)), map[string]bool{}, 0
	for _, command := range []string{"proxy", "server"} {
		for i, one := range names {
			for j, other := range names[i:] {
				if one != "nothing" && other != "nothing" && (5*i+j)%every != 0 {
					continue
				}
				text := assemble(t, filepath.Join(folder, command+" "+one+" "+other), contextOf(command), all[one], all[other])
				c, err := config.Parse("h.yaml", text)
				if err != nil {
					continue
				}
				valid[one], valid[other] = true, true
				checked := Probe(c)
				if checked != nil && !strings.HasPrefix(checked.Error(), "h.yaml:1:") {
					t.Errorf("%s with %s and %s: check has no place: %v", command, one, other, checked)
				}
				if checked != nil || c.Source != nil {
					continue
				}
				started++
				instance, err := Start(t.Context(), Options{Config: c, Server: command == "server", Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Errorf("%s with %s and %s: check accepts\n%s\nand the start fails: %v", command, one, other, text, err)
					continue
				}
				_ = instance.Stop() // A store that does not answer is no fault of the start.
			}
		}
	}
	if started < 1000/every {
		t.Errorf("only %d configurations started", started)
	}
	for _, name := range names {
		if !valid[name] {
			t.Errorf("no configuration with the section %s is valid", name)
		}
	}
}
