package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
)

// TestLogIdentity: what check says of the parts in lines of the access log, and what the guard finds out for them.
func TestLogIdentity(t *testing.T) {
	const identity = "identity: {trusted_proxies: [10.0.0.0/8], user_ip_headers: [X-Real-Ip]}"
	for _, c := range []struct {
		log, summary, note string
		logged             int
	}{
		{"{access: json}", "", "", 0},
		{
			"{access: json, identity: [header:A, user_ip], identity_plain: [header:B]}",
			"access log with hashes of header:A, user_ip, and the values of header:B", "each start makes a new secret", 3,
		},
		{"{access: json, identity: [header:A], keys_secret_file: f}", "access log with hashes of header:A", "", 1},
		{"{access: json, identity: [cookie:c], keys: plain}", "access log with the values of cookie:c", "", 1},
		{"{access: json, identity_plain: [header:B]}", "access log with the values of header:B", "", 1},
	} {
		parsed, err := Parse("headgate.yaml", []byte("version: 1\nlog: "+c.log+"\n"+identity+"\nrules: []\nproxy: {upstream: \"http://127.0.0.1:1\"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := parsed.WriteSummary(&b); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(b.String(), "\n"); c.summary != "" && !slices.Contains(lines, c.summary) || c.summary == "" &&
			strings.Contains(b.String(), "access log") {
			t.Errorf("%s: the summary is\n%s", c.log, b.String())
		}
		if notes := strings.Join(parsed.LogWarnings(), "\n"); (c.note == "") != (notes == "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: the notes are %q", c.log, notes)
		}
		described, err := parsed.GuardConfig(nil, nil)
		if err != nil || len(described.Logged) != c.logged {
			t.Errorf("%s: the guard logs %v: %v", c.log, described.Logged, err)
		}
		if _, err := guard.New(described); err != nil {
			t.Error(err)
		}
	}
}
