package acceptance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ownConfiguration has rules by two headers, which the access log has as hashes. The third client has limits of its own.
const ownConfiguration = `version: 1
max_memory: 16MiB
log:
  access: json
  access_file: %s
  identity: [header:X-Client-Id, header:X-Plan]
  keys_secret_file: %s
rules:
  - {name: gold, match: {headers: {X-Plan: gold}}, key: [header:X-Client-Id], algorithm: sliding_log, limits: ["12/1h"]}
  - name: client
    match: {path: /api/*}
    key: [header:X-Client-Id]
    algorithm: fixed_window
    limits: ["9/1d"]
    overrides: {client-3: {limits: ["2/1d"]}, client-4: {unlimited: true}}
  - {name: search, match: {path: /api/search}, key: [ip], limits: ["30/1h"], burst: 30}
  - {name: answers, match: {path: /api/login}, key: [header:X-Client-Id], algorithm: sliding_log, limits: ["3/1h"], count: {status: [401]}}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// TestReplayOwnLog: requests go through a proxy, one after another, and its access log is replayed with the same rules. Each line is
// refused if and only if the proxy refused it, and by the same rule. Without the secret, the rules with values do not fit the log.
func TestReplayOwnLog(t *testing.T) {
	t.Parallel()
	const requests = 300
	behind := newWitness(t)
	folder := t.TempDir()
	log, secret, refused := filepath.Join(folder, "access.log"), filepath.Join(folder, "secret"), filepath.Join(folder, "refused")
	if err := os.WriteFile(secret, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := start(t, fmt.Sprintf(ownConfiguration, log, secret), behind.url)
	random := rand.New(rand.NewPCG(1, 2))
	statuses := map[int]int{}
	for range requests {
		path := []string{"/api/search", "/api/items", "/api/login", "/other"}[random.IntN(4)]
		headers := []string{"X-Client-Id", "client-" + strconv.Itoa(random.IntN(12))}
		if random.IntN(3) == 0 {
			headers = append(headers, "X-Plan", []string{"gold", "free"}[random.IntN(2)])
		}
		answer, _ := get(t, "http://"+i.Proxy+path, headers...)
		statuses[answer.StatusCode]++
	}
	want := map[int64]string{} // the rule, by the line
	for n, line := range logged(t, log, requests) {
		var entry struct {
			Verdict string `json:"verdict"`
			Rule    string `json:"rule"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "client-") {
			t.Fatalf("the log has a value in clear: %s", line)
		}
		if entry.Verdict == "deny" {
			want[int64(n+1)] = entry.Rule
		}
	}
	if len(want) < requests/10 || len(want) != statuses[429] {
		t.Fatalf("the proxy refused %d of %d requests by its log: %v", len(want), requests, statuses)
	}
	status, stdout, stderr := call(t, "replay", "--config", i.path, "--keys-secret-file", secret, "--refused", refused, "--json", log)
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	text, err := os.ReadFile(refused)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]string{}
	for line := range strings.Lines(string(text)) {
		var r struct {
			Line int64  `json:"line"`
			Rule string `json:"rule"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got[r.Line] = r.Rule
	}
	for line := range max(int64(requests), int64(len(got))) {
		if (got[line+1] == "") != (want[line+1] == "") {
			t.Errorf("line %d: the proxy has the refusal %q, the replay %q", line+1, want[line+1], got[line+1])
		}
	}
	if !strings.Contains(stdout, `"only_replay_refuses": 0`) || !strings.Contains(stdout, `"only_log_refuses": 0`) {
		t.Errorf("the report is\n%s", stdout)
	}
	status, stdout, _ = call(t, "replay", "--config", i.path, log)
	if status != 0 || !strings.Contains(stdout, "--keys-secret-file hashes the value") {
		t.Errorf("without the secret: status %d and\n%s", status, stdout)
	}
}
