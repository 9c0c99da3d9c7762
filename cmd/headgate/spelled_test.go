package main

import (
	"os"
	"strings"
	"testing"
)

// TestWhatPeopleTryFirst checks help, --version and a file name without --config.
func TestWhatPeopleTryFirst(t *testing.T) {
	path := write(t, fine)
	for args, want := range map[string]string{
		"help": "Usage: headgate <command>", "help proxy": "Usage: headgate proxy", "--version": "headgate dev, commit",
		"check " + path: path + " is fine", "check --config " + path: path + " is fine",
	} {
		if status, stdout, stderr := call(t, strings.Fields(args)...); status != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%s: status %d, printed %q and %q, want %q", args, status, stdout, stderr, want)
		}
	}
	if status, _, stderr := call(t, "chekc"); status != exitUsage || !strings.Contains(stderr, `did you mean "check"?`) {
		t.Errorf("chekc: status %d: %s", status, stderr)
	}
}

func TestConfigurationFromStandardInput(t *testing.T) {
	file, err := os.Open(write(t, fine))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	defer func() { os.Stdin = before; _ = file.Close() }()
	os.Stdin = file
	if status, stdout, stderr := call(t, "check", "--config", "-"); status != exitOK || !strings.Contains(stdout, "is fine: 1 rule") {
		t.Errorf("status %d: %q and %q", status, stdout, stderr)
	}
}

func TestConfigurationFromTheEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, _, stderr := call(t, "check"); status != exitUsage || !strings.Contains(stderr, "headgate.yaml: no such file") {
		t.Errorf("without a file: status %d: %s", status, stderr)
	}
	t.Setenv("HEADGATE_PROXY_UPSTREAM", "http://127.0.0.1:9")
	t.Setenv("HEADGATE_FAIR_SHARE_CLIENT", "header:X-Client-Id")
	t.Setenv("HEADGATE_FAIR_SHARE_CAPACITY", "100")
	if status, stdout, stderr := call(t, "check"); status != exitOK || !strings.Contains(stdout, "is fine") {
		t.Errorf("from variables: status %d: %q and %q", status, stdout, stderr)
	}
}
