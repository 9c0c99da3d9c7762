package app

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lease"
	"github.com/headgate/headgate/internal/config"
)

// TestProbeOfARootWithRules: rules of a server that is alone spend its own leases, also when the configuration is only checked.
func TestProbeOfARootWithRules(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("headgate.yaml", []byte(`version: 1
server: {grpc: "127.0.0.1:0", http: off}
rules: [{name: db, key: [path], lease: "db/{1}"}]
lease: {resources: [{match: "db/*", capacity: 500/s}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := Probe(c); err != nil {
		t.Error(err)
	}
}

// TestServersOfTheGroup: rules of a follower find the master among the servers of the group, so this server must be one of them.
func TestServersOfTheGroup(t *testing.T) {
	t.Parallel()
	const text = `version: 1
server: {grpc: "127.0.0.1:0", http: off}
rules: [{name: db, key: [path], lease: "db/{1}"}]
lease:
  election: {etcd: ["127.0.0.1:1"], group: eu, address: "eu-1:8081", servers: ["eu-1:8081", "eu-2:8081"]}
  resources: [{match: "db/*", capacity: 500/s}]
`
	for address, want := range map[string]string{
		"eu-1:8081": "",
		"eu-3:8081": "lease.election.servers does not have eu-3:8081, the address of this server",
	} {
		c, err := config.Parse("headgate.yaml", []byte(strings.Replace(text, `"eu-1:8081"`, `"`+address+`"`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := Probe(c); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

// TestReloadChecksTheServersOfTheGroup: a reload refuses servers that the next start refuses, and keeps what is in effect.
func TestReloadChecksTheServersOfTheGroup(t *testing.T) {
	t.Parallel()
	const alone = "server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}\nrules: [{name: db, key: [path], lease: 'db/{1}'}]\n" +
		"lease:\n  resources: [{match: 'db/*', capacity: 5/s}]\n"
	const group = alone + "  election: {etcd: ['127.0.0.1:1'], group: eu, address: 'eu-1:8081', servers: ['eu-1:8081', 'eu-2:8081']}\n"
	other := strings.Replace(group, "address: 'eu-1:8081'", "address: 'eu-3:8081'", 1)
	unnamed := strings.Replace(group, "address: 'eu-1:8081', ", "", 1)
	o := serverOptions(t, alone)
	var next *config.Config
	o.Load = func() (*config.Config, error) { return next, nil }
	i := startServer(t, o)
	for _, row := range []struct{ settings, want string }{
		{group, ""},
		{other, "lease.election.servers does not have eu-3:8081, the address of this server"},
		{unnamed, "lease.election.servers does not have 127.0.0.1:0, the address of this server"},
		{alone, ""},
	} {
		next = serverConfig(t, row.settings)
		if err := i.Reload(); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.settings, err, row.want)
		}
	}
	// The name of the machine may change after the start: settings that stay are not checked again.
	if err := lease.CheckElection(serverConfig(t, unnamed), serverConfig(t, unnamed)); err != nil {
		t.Error(err)
	}
}

// TestTokenOfRules: a token that cannot be read is a fault of the configuration for rules too, which otherwise never get a lease.
func TestTokenOfRules(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"proxy: {listen: \"127.0.0.1:0\", upstream: \"http://127.0.0.1:9\"}\nlease: {servers: [\"eu-1:8081\"], token_file: /none/token}\n",
		"server: {grpc: \"127.0.0.1:0\", http: off}\nlease:\n  token_file: /none/token\n  resources: [{match: \"db/*\", capacity: 500/s}]\n" +
			"  election: {etcd: [\"127.0.0.1:1\"], group: eu, address: \"eu-1:8081\", servers: [\"eu-1:8081\"]}\n",
	} {
		c, err := config.Parse("headgate.yaml", []byte("version: 1\nrules: [{name: db, key: [path], lease: \"db/{1}\"}]\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		if err := Probe(c); err == nil || !strings.Contains(err.Error(), "lease.token_file: open /none/token") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
