package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckRequests checks the exit status and the output for each end of a file of requests.
func TestCheckRequests(t *testing.T) {
	path := write(t, "version: 1\nrules: [{name: a, key: [ip], limits: [2/h]}]\nthrottle: {concurrency: 4}\nproxy: {upstream: http://127.0.0.1:9000}\n")
	for _, row := range []struct {
		text           string
		status         int
		stdout, stderr string
	}{
		{"test one\n2 x GET / -> 200\n", exitOK, "2 requests in 1 tests get the expected answers; not tried: throttle", ""},
		{"test one\n3 x GET / -> 200\n", exitFailed, ":2: GET /: status 429 (over_limit by a), want 200\n", "check: 1 of 1 tests in "},
		{"GET\n", exitUsage, "", `:1: "GET" is not a request: write it like`},
		{"GET / from here -> 200\n", exitUsage, "", `line 1: "here" is no address`},
	} {
		file := filepath.Join(t.TempDir(), "requests")
		if err := os.WriteFile(file, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, stdout, stderr := call(t, "check", "--config", path, "--requests", file)
		if status != row.status || !strings.Contains(stdout, row.stdout) || !strings.Contains(stderr, row.stderr) {
			t.Errorf("%q: status %d\n%s%s", row.text, status, stdout, stderr)
		}
	}
	if status, _, stderr := call(t, "check", "--config", path, "--requests", "nothing-here"); status != exitUsage || !strings.Contains(stderr, "read the requests: open nothing-here") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
