package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestMisspelledVariables leaves out one letter of each known variable, and expects a warning
// with the correct name.
func TestMisspelledVariables(t *testing.T) {
	known := variables()
	if len(known) < 60 || !slices.Contains(known, "HEADGATE_FAIR_SHARE_CAPACITY") {
		t.Fatalf("the known variables are %v, want more", known)
	}
	for i, name := range known {
		if i%race.Fewer(1, 10) > 0 {
			continue
		}
		if got := MisspelledVariables([]string{name + "=x"}); got != nil {
			t.Errorf("known variable %s: got warning %q, want none", name, got)
		}
		last := strings.LastIndex(name, "_") + 1
		if len(name)-last < 4 {
			continue // A short word can be near several known names.
		}
		typo := name[:last+1] + name[last+2:]
		got := MisspelledVariables([]string{"PATH=/bin", typo + "=secret"})
		if want := typo + " is not known: did you mean " + name + "?"; len(got) != 1 || got[0] != want {
			t.Errorf("%s: got warnings %q, want %q", typo, got, want)
		}
	}
}

func TestMisspelledVariablesAmongOthers(t *testing.T) {
	for _, row := range []struct{ name, want string }{
		{"HEADGATE_PROXY_UPSTRAEM", "HEADGATE_PROXY_UPSTREAM"},
		{"HEADGATE_PROXYUPSTREAM", "HEADGATE_PROXY_UPSTREAM"},
		{"HEADGATE_STORE_TIME_OUT", "HEADGATE_STORE_TIMEOUT"},
		{"HEADGATE_proxy_upstream", "HEADGATE_PROXY_UPSTREAM"},
		{"HEADGATE_CONFG", "HEADGATE_CONFIG"},
		// Without the section: only one known name ends in this way.
		{"HEADGATE_UPSTREAM", "HEADGATE_PROXY_UPSTREAM"},
		{"HEADGATE_LISTEN", ""},
		{"HEADGATE_CONFIG", ""},
		// A variable of another program in the same environment.
		{"HEADGATE_ETCD", ""},
		{"HEADGATE_ETCD_CA", ""},
		{"HEADGATE_ETCD_PASSWORD_FILE", ""},
		{"HEADGATE_ETCD_USER", ""},
		// Kubernetes sets such variables for services named headgate and headgate-proxy.
		{"HEADGATE_SERVICE_HOST", ""},
		{"HEADGATE_SERVICE_PORT", ""},
		{"HEADGATE_SERVICE_PORT_ADMIN", ""},
		{"HEADGATE_PORT", ""},
		{"HEADGATE_PORT_8080_TCP", ""},
		{"HEADGATE_PORT_8080_TCP_ADDR", ""},
		{"HEADGATE_PORT_8080_TCP_PROTO", ""},
		{"HEADGATE_PROXY_SERVICE_HOST", ""},
		{"HEADGATE_PROXY_PORT", ""},
		{"HEADGATE_PROXY_PORT_80_TCP_PORT", ""},
		// Names that would move a terminal's cursor, or that are very long.
		{"HEADGATE_PROXY_UPST\x1bEAM", ""},
		{"HEADGATE_" + strings.Repeat("PROXY", 100000), ""},
		{"HEADGATE_", ""},
		{"HEADGATE", ""},
	} {
		want := []string(nil)
		if row.want != "" {
			want = []string{row.name + " is not known: did you mean " + row.want + "?"}
		}
		if got := MisspelledVariables([]string{row.name + "=x"}, "HEADGATE_CONFIG"); !slices.Equal(got, want) {
			t.Errorf("%.60q: got warnings %q, want %q", row.name, got, want)
		}
	}
}
