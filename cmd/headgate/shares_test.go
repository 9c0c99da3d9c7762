package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestSharesUsage checks that wrong usage is reported without a call to the instance.
func TestSharesUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--watch --every 0s":   "--every is 0s: write at least 10ms",
		"--top=-1":             "--top is -1: write the number of clients",
		"--top ten":            "--top",
		"--sort lent":          `--sort must be one of "name","demand","size","borrowed","refused"`,
		"--json --top 3":       "--sort and --top change the table only",
		"--json --sort demand": "--sort and --top change the table only",
		"--sort size --top 3":  "nothing answers on 127.0.0.1:1",
		"--watch":              "nothing answers on 127.0.0.1:1",
		"--sort name --json":   "nothing answers on 127.0.0.1:1",
	} {
		var stderr bytes.Buffer
		line := append([]string{"ctl", "shares", "--admin", "127.0.0.1:1"}, strings.Fields(args)...)
		status, wanted := run(line, new(bytes.Buffer), &stderr), exitUsage
		if strings.HasPrefix(want, "nothing answers") {
			wanted = exitFailed
		}
		if status != wanted || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: status %d, want %d: %s", args, status, wanted, stderr.String())
		}
	}
}
