package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/heap/bounds"
	"github.com/headgate/headgate/internal/config"
)

// call runs the command line and returns its exit status and output.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, faults bytes.Buffer
	status = run(args, &out, &faults)
	return status, out.String(), faults.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const fine = "version: 1\nrules:\n  - {name: product, key: [ip], limits: [500/2s]}\n"

func TestCheckOfAFineFile(t *testing.T) {
	path := write(t, fine)
	status, stdout, stderr := call(t, "check", "--config", path)
	if status != 0 || stderr != "" {
		t.Errorf("status %d: %s", status, stderr)
	}
	for _, want := range []string{path + " is fine: 1 rule, ", "product", "500/2s", "BYTES PER KEY"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
}

// TestCheckPrintsEdges: check prints when the next windows of a calendar period begin.
func TestCheckPrintsEdges(t *testing.T) {
	text := strings.Replace(fine, "500/2s]", "200/month], algorithm: fixed_window, time_zone: America/Asuncion", 1)
	status, stdout, stderr := call(t, "check", "--config", write(t, text))
	if want := "product: the next windows of a month begin at 20"; status != 0 || !strings.Contains(stdout, want) ||
		!strings.Contains(stdout, "(America/Asuncion)") {
		t.Errorf("status %d: %s\n%q is not in\n%s", status, stderr, want, stdout)
	}
}

func TestCheckOfAFaultyFile(t *testing.T) {
	path := write(t, strings.Replace(fine, "500/2s", "500/2x", 1))
	status, stdout, stderr := call(t, "check", "--config", path)
	want := path + `:3:46: rules[0].limits[0]: period "2x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d
    3 |   - {name: product, key: [ip], limits: [500/2x]}
      |                                              ^
`
	if status != 2 || stdout != "" || stderr != want {
		t.Errorf("status %d, printed %q, and\n%s\nwant\n%s", status, stdout, stderr, want)
	}
}

func TestCheckOfNoFile(t *testing.T) {
	status, _, stderr := call(t, "check", "--config", filepath.Join(t.TempDir(), "none.yaml"))
	if status != 2 || !strings.Contains(stderr, "no such file") || !strings.Contains(stderr, "--config") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestCheckTakesTheFileOfTheEnvironment(t *testing.T) {
	t.Setenv("HEADGATE_CONFIG", write(t, fine))
	if status, _, stderr := call(t, "check"); status != 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestUsage(t *testing.T) {
	for _, row := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 2, "Usage: headgate"},
		{[]string{"--help"}, 0, "Usage: headgate"},
		{[]string{"check", "--help"}, 0, "HEADGATE_CONFIG"},
		{[]string{"version"}, 0, "headgate dev, commit unknown, go1."},
		{[]string{"chekc"}, 2, "Try headgate --help."},
		{[]string{"check", "--bogus"}, 2, "unknown flag --bogus"},
	} {
		status, stdout, stderr := call(t, row.args...)
		if status != row.status || !strings.Contains(stdout+stderr, row.want) {
			t.Errorf("headgate %v: status %d\n%s%s", row.args, status, stdout, stderr)
		}
	}
}

// TestCheckWarnsOfCallers: callers without a listener that asks for a proof are valid, and probably not meant.
func TestCheckWarnsOfCallers(t *testing.T) {
	const text = `version: 1
rules: []
server:
  callers: [{name: a, tokens: ["sha256:9e2bdcc4d8c3b4a1d57d1b4f0c4a8f2b2ccf1e3e2b3a9f6d1c0b7a8e9f0d1c2b"], scopes: [decide]}]
`
	status, _, stderr := call(t, "check", "--config", write(t, text))
	if status != 0 || !strings.HasPrefix(stderr, "headgate: warning: callers have no effect") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestCheckNotesEndedRaises: a raise that has ended is valid, and has no effect.
func TestCheckNotesEndedRaises(t *testing.T) {
	const text = `version: 1
rules: [{name: a, key: ['header:C'], quota: calls}]
default_plan: free
plans: {free: {quotas: {calls: [{limit: 5/1d}]}}}
customers: {acme: {raise: {limits: {calls: [{limit: 9/1d}]}, until: 2001-01-01}}}
`
	status, _, stderr := call(t, "check", "--config", write(t, text))
	if status != 0 || !strings.HasPrefix(stderr, `headgate: note: customer "acme": the raise has ended`) {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestCheckNotesKeysBeyondQueries: a rule for queries that counts by an address refuses every query of Envoy's service.
func TestCheckNotesKeysBeyondQueries(t *testing.T) {
	const rules = "version: 1\nrules: [{name: a, match: {domain: d}, key: [%s], limits: [1/m]}]\nserver: {grpc: {address: %s}, http: {address: %s}}\n"
	for _, row := range []struct {
		key, grpc, http string
		want            bool
	}{
		{"ip", "'127.0.0.1:0'", "off", true}, {"ip", "off", "'127.0.0.1:0'", true}, {"'descriptor:user'", "'127.0.0.1:0'", "off", false},
	} {
		status, _, stderr := call(t, "check", "--config", write(t, fmt.Sprintf(rules, row.key, row.grpc, row.http)))
		if status != 0 || strings.HasPrefix(stderr, `headgate: note: rule "a": Envoy's rate limit service`) != row.want {
			t.Errorf("%+v: status %d: %s", row, status, stderr)
		}
	}
}

// TestCheckNotesMachineMemory: a bound above the memory of this machine is valid, and not what is enforced here.
func TestCheckNotesMachineMemory(t *testing.T) {
	machine := bounds.MachineMemory()
	if runtime.GOOS == "linux" && machine == 0 {
		t.Fatal("the memory of the machine is not known")
	}
	for _, connections := range []int{16384, 1048576} {
		text := fmt.Sprintf("version: 1\nrules: []\nproxy: {upstream: 'http://127.0.0.1:1', max_connections: %d}\n", connections)
		loaded, err := config.Parse("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want := machine > 0 && loaded.MemoryBound() > machine
		status, _, stderr := call(t, "check", "--config", write(t, text))
		if status != 0 || strings.HasPrefix(stderr, "headgate: note: memory of at most ") != want {
			t.Errorf("%d connections: status %d: %s", connections, status, stderr)
		}
	}
}

// TestServerExitStatus: a fault that check finds has the exit status of a wrong configuration at the start too.
func TestServerExitStatus(t *testing.T) {
	text := "version: 1\nrules: []\nserver:\n  http: off\n  grpc: {address: \"127.0.0.1:0\", tls: {cert: /none/a.pem, key: /none/a.key}}\n" +
		"admin: {listen: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n"
	for _, command := range []string{"check", "server"} {
		if status, _, stderr := call(t, command, "--config", write(t, text)); status != exitUsage || !strings.Contains(stderr, "/none/a.pem") {
			t.Errorf("%s: exit status %d: %s", command, status, stderr)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	text = fmt.Sprintf("version: 1\nrules: []\nproxy: {listen: %q, upstream: \"http://127.0.0.1:9\"}\n"+
		"server: {http: off, grpc: {address: \"127.0.0.1:0\", tls: {cert: /none/a.pem, key: /none/a.key}}}\n"+
		"admin: {listen: off, health: off}\n", taken.Addr())
	if status, _, stderr := call(t, "proxy", "--config", write(t, text)); status != exitFailed || !strings.Contains(stderr, "in use") {
		t.Errorf("a port in use, beside a fault of the section server: exit status %d: %s", status, stderr)
	}
	text = "version: 1\nrules: []\nproxy: {listen: \"127.0.0.1:0\", upstream: \"http://127.0.0.1:9\"}\n" +
		"server: {callers_file: /none/callers}\nadmin: {listen: off, health: off}\n"
	if status, _, stderr := call(t, "proxy", "--config", write(t, text)); status != exitUsage || !strings.Contains(stderr, "/none/callers") {
		t.Errorf("a fault of the callers, which the proxy knows too: exit status %d: %s", status, stderr)
	}
	text = fmt.Sprintf("version: 1\nrules: []\nserver: {grpc: off, http: %q}\nadmin: {listen: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n", taken.Addr())
	if status, _, stderr := call(t, "server", "--config", write(t, text)); status != exitFailed || !strings.Contains(stderr, "in use") {
		t.Errorf("a port in use: exit status %d: %s", status, stderr)
	}
}
