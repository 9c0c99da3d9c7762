package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// placed matches a fault with its file, line and column.
var placed = regexp.MustCompile(`(?m)^\S*\.yaml:[0-9]+:[0-9]+: `)

// TestCheckRefusesWhatAStartRefuses checks that each configuration that a command refuses to start with is refused by check too,
// with the file, the line and the column. Every row is valid by its text alone.
func TestCheckRefusesWhatAStartRefuses(t *testing.T) {
	const up, server = "proxy: {upstream: 'http://127.0.0.1:9', listen: '127.0.0.1:0'}", "server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}"
	for what, row := range map[string]struct{ command, settings string }{
		"in flight in a server":           {"server", server + "\nrules: [{name: slow, key: [all], in_flight: 3}]"},
		"count in a server":               {"server", server + "\nrules: [{name: late, key: [all], limits: [5/s], count: {status: [404]}}]"},
		"settle in a server":              {"server", server + "\nrules: [{name: big, key: [all], limits: [5/s], settle: 'header:X-Units'}]"},
		"a throttle in a server":          {"server", server + "\nthrottle: {concurrency: 5}\nrules: []"},
		"a journal in a file":             {"proxy", up + "\n" + metering("FOLDER/h.yaml/journal", "FOLDER/lines")},
		"a journal that is a file":        {"server", server + "\n" + metering("FOLDER/h.yaml", "FOLDER/lines")},
		"lines in a file":                 {"proxy", up + "\n" + metering("FOLDER/journal", "FOLDER/h.yaml/lines")},
		"authorities of events":           {"proxy", up + "\n" + strings.Replace(metering("FOLDER/journal", "x"), "lines: {folder: x}", "events: {url: 'https://127.0.0.1:9/x', ca: none.ca}", 1)},
		"a certificate of the proxy":      {"proxy", "proxy: {upstream: 'http://127.0.0.1:9', listen: '127.0.0.1:0', tls: {cert: none.crt, key: none.key}}\nrules: []"},
		"a certificate of grpc":           {"server", "server: {grpc: {address: '127.0.0.1:0', tls: {cert: none.crt, key: none.key}}, http: off}\nrules: []"},
		"a certificate of http":           {"server", "server: {http: {address: '127.0.0.1:0', tls: {cert: none.crt, key: none.key}}, grpc: off}\nrules: []"},
		"a certificate of resp":           {"server", "server: {resp: {address: '127.0.0.1:0', tls: {cert: none.crt, key: none.key}}, grpc: off, http: off}\nrules: []"},
		"authorities of the upstream":     {"proxy", "proxy: {upstream: 'https://127.0.0.1:9', upstream_tls: {ca: none.ca}, listen: '127.0.0.1:0'}\nrules: []"},
		"a socket of the proxy":           {"proxy", "proxy: {upstream: 'http://127.0.0.1:9', listen: 'unix:/none/at/all.sock'}\nrules: []"},
		"a socket of grpc":                {"server", "server: {grpc: 'unix:/none/at/all.sock', http: off}\nrules: []"},
		"a socket of http":                {"server", "server: {http: 'unix:/none/at/all.sock', grpc: off}\nrules: []"},
		"a password of the store":         {"proxy", up + "\nrules: []\nstore: redis://127.0.0.1:1\nstore_password_file: none.txt"},
		"authorities of the store":        {"proxy", up + "\nrules: []\nstore: rediss://127.0.0.1:1\nstore_tls: {ca: none.ca}"},
		"authorities of store_per_second": {"proxy", up + "\nrules: []\nstore: redis://127.0.0.1:1\nstore_per_second: rediss://127.0.0.1:2\nstore_tls: {ca: none.ca}"},
		"an access log":                   {"proxy", up + "\nrules: []\nlog: {access: json, access_file: none/access.log}"},
		"a secret of keys":                {"proxy", up + "\nrules: []\nlog: {keys: hash, keys_secret_file: none.txt}"},
		"regions":                         {"proxy", up + "\nrules: []\nidentity: {region_db: none.mmdb}"},
		"keys of tokens":                  {"proxy", up + "\nrules: []\nidentity: {jwt: {keys: none.json}}"},
		"a file of callers":               {"server", "server: {grpc: {address: '127.0.0.1:0', auth: token}, http: off, callers_file: none.yaml}\nrules: []"},
		"a token of leases":               {"server", server + "\nrules: []\nlease: {servers: ['127.0.0.1:1'], token_file: none.token}"},
		"authorities of leases":           {"server", server + "\nrules: []\nlease: {servers: ['127.0.0.1:1'], tls: {ca: none.ca}}"},
		"a password of an election":       {"server", server + "\nrules: []\nlease: {resources: [{match: a, capacity: 5/s}], election: {etcd: ['127.0.0.1:1'], group: eu, address: '127.0.0.1:2', user: headgate, password_file: none.password}}"},
		"servers of an election":          {"server", server + "\nrules: [{name: slow, key: [ip], lease: db, fallback: allow}]\nlease: {resources: [{match: db, capacity: 5/s}], election: {etcd: ['127.0.0.1:1'], group: eu, servers: ['127.0.0.1:2']}}"},
		"authorities of a source":         {"proxy", up + "\nrules: []\nsource: {etcd: {endpoints: ['https://127.0.0.1:1'], tls: {ca: none.ca}}}"},
	} {
		t.Run(what, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "h.yaml")
			text := "version: 1\nadmin: {listen: off, health: off}\n" + strings.ReplaceAll(row.settings, "FOLDER", folder) + "\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if status, _, stderr := call(t, "check", "--offline", "--config", path); status != exitOK {
				t.Fatalf("the text is at fault: %s", stderr)
			}
			status, _, started := call(t, row.command, "--config", path)
			if status == exitOK {
				t.Fatalf("%s starts", row.command)
			}
			status, _, checked := call(t, "check", "--config", path)
			if status != exitUsage || !placed.MatchString(checked) {
				t.Errorf("check: status %d without a place: %s", status, checked)
			}
			if !placed.MatchString(started) {
				t.Errorf("%s: no place: %s", row.command, started)
			}
		})
	}
}

func metering(journal, lines string) string {
	return "rules: [{name: api, key: ['header:X-A'], quota: calls}]\nplans: {free: {quotas: {calls: [{limit: 5/30d}]}}}\ndefault_plan: free\n" +
		"metering: {journal: '" + journal + "', lines: {folder: " + lines + "}}"
}
