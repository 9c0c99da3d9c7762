package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
