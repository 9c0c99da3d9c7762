package main

import (
	"strings"
	"testing"
)

// TestMisspelledVariables checks that check and proxy warn, also beside a fault of the
// configuration. The warning does not change the exit status.
func TestMisspelledVariables(t *testing.T) {
	path := write(t, fine)
	t.Setenv("HEADGATE_PROXY_UPSTRAEM", "http://127.0.0.1:9")
	t.Setenv("HEADGATE_CONFGI", path)
	t.Setenv("HEADGATE_ETCD_PREFIX", "/limits/")
	for command, want := range map[string]int{"check": exitOK, "proxy": exitUsage} {
		status, _, stderr := call(t, command, "--config", path)
		if status != want {
			t.Errorf("%s: status %d, want %d: %s", command, status, want, stderr)
		}
		for _, want := range []string{
			"headgate: warning: HEADGATE_CONFGI is not known: did you mean HEADGATE_CONFIG?\n",
			"headgate: warning: HEADGATE_PROXY_UPSTRAEM is not known: did you mean HEADGATE_PROXY_UPSTREAM?\n",
		} {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s says\n%swant\n%s", command, stderr, want)
			}
		}
		if strings.Contains(stderr, "HEADGATE_ETCD_PREFIX") {
			t.Errorf("%s warns of a variable that ctl limit reads: %s", command, stderr)
		}
	}
}

// TestUnknownFlagsNameTheNearest checks that kong suggests the closest flag.
func TestUnknownFlagsNameTheNearest(t *testing.T) {
	for _, args := range []string{"check --ofline", "proxy --confg x", "ctl status --admn x", "ctl limit get --ectd x"} {
		if status, _, stderr := call(t, strings.Fields(args)...); status != exitUsage || !strings.Contains(stderr, "did you mean \"--") {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
	}
}
