package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// Files of a tree. The digest is that of the token token-of-leaf.
const (
	leaseCallers = `version: 1
server:
  grpc: {address: "127.0.0.1:8081", auth: token}
  callers:
    - {name: leaf, tokens: ["sha256:36d2aaacd663fb680d3605e3d72c99e2137bcb149b991177db4563ccc740bf61"], scopes: [lease]}
lease:
  holders: {leaf: {server: true}}
`
	leaseRoot = leaseCallers + `  resources:
    - {match: mail, capacity: 10/s}
    - {match: jobs, capacity: 9, unit: in_flight}
    - {match: "db/*/rows", capacity: 500/s}
`
	leaseMiddle = leaseCallers + `  servers: ["root.example.com:8081"]
  token_file: lease.token
`
	leaseOfParent = `lease:
  servers: ["eu-1.example.com:8081"]
  token_file: lease.token
rules:
  - {name: orders, match: {path: /orders/*}, key: [ip, path], lease: "db/{1}/rows", fallback: deny}
`
	leaseLeaf = `version: 1
server: {grpc: "127.0.0.1:8082"}
` + leaseOfParent
	// leaseClient gives no leases.
	leaseClient = `version: 1
proxy: {upstream: "http://127.0.0.1:9000"}
` + leaseOfParent
)

// parentRow changes texts of a pair that fits.
type parentRow struct {
	what          string
	child, parent string
	childEdit     string // old=>new
	parentEdits   []string
	token         string // another one
	offline       bool
	want          string // the headline of the only fault, or none
}

// TestParentFits has pairs without a fault.
func TestParentFits(t *testing.T) {
	const noServer, noAuth = "{leaf: {server: true}}=>{leaf: {}}", "auth: token=>auth: none"
	const noHolders, noToken = "  holders: {leaf: {server: true}}\n=>", "  token_file: lease.token\n=>"
	runParents(t, []parentRow{
		{what: "a leaf of a root", child: leaseLeaf, parent: leaseRoot},
		{what: "a leaf of a server between", child: leaseLeaf, parent: leaseMiddle},
		{what: "a server between of a root", child: leaseMiddle, parent: leaseRoot},
		{what: "just shorter", child: leaseLeaf, childEdit: "lease:\n=>lease:\n  length: 22499ms\n", parent: leaseMiddle},
		{what: "a client", child: leaseClient, parent: leaseRoot},
		{what: "a client that is no server", child: leaseClient, parent: leaseRoot, parentEdits: []string{noServer}},
		{what: "a client without a name", child: leaseClient, parent: leaseRoot, parentEdits: []string{noAuth, noHolders}},
		{what: "a client of short leases", child: leaseClient, parent: leaseRoot, parentEdits: []string{"resources:=>length: 8s\n  resources:"}},
		{
			what: "perhaps a certificate", child: leaseLeaf, childEdit: noToken, parent: leaseRoot,
			parentEdits: []string{"auth: token=>auth: [token, mtls], tls: {cert: a.pem, key: a.key, client_ca: ca.pem}"},
		},
		{what: "another token, which is not read", child: leaseLeaf, parent: leaseRoot, token: "other", offline: true},
		{what: "a part that is a name", child: leaseLeaf, childEdit: "db/{1}/rows=>{2}ai{1}", parent: leaseRoot},
		{what: "a part around a star", child: leaseLeaf, childEdit: "db/{1}/rows=>d{2}/rows", parent: leaseRoot},
		{what: "a rule that is off", child: leaseLeaf, childEdit: `lease: "db/{1}/rows"=>lease: none, mode: off`, parent: leaseRoot},
		{what: "a resource above the parent", child: leaseLeaf, childEdit: "db/{1}/rows=>none", parent: leaseMiddle},
		{
			what: "a group", child: leaseLeaf, childEdit: "eu-1=>eu-2", parent: leaseRoot,
			parentEdits: []string{"resources:=>election: {etcd: [127.0.0.1:2379], group: eu, address: \"eu-2.example.com:8081\"}\n  resources:"},
		},
	})
}

// TestParentFaults has what keeps a server from the leases of its parent.
func TestParentFaults(t *testing.T) {
	const noServer, noAuth = "{leaf: {server: true}}=>{leaf: {}}", "auth: token=>auth: none"
	const noHolders = "  holders: {leaf: {server: true}}\n=>"
	runParents(t, []parentRow{
		{
			what: "no section lease", child: "version: 1\nrules: []\n", parent: leaseRoot,
			want: `leaf.yaml:1:1: lease.servers: is missing, so this server has no parent: leave out the parent, or write ` +
				`lease: {servers: ["eu-1.example.com:8081"]}`,
		},
		{what: "a root", child: leaseRoot, parent: leaseRoot, want: "leaf.yaml:7:3: lease.servers: is missing, so this server has no parent: "},
		{
			what: "a parent without leases", child: leaseLeaf, parent: "version: 1\nrules: []\n",
			want: "root.yaml:1:1: lease: this server gives no leases, so it is no parent: name the file of a server in lease.servers of leaf.yaml",
		},
		{what: "a client as a parent", child: leaseLeaf, parent: leaseClient, want: "root.yaml:4:3: lease: this server gives no leases, so"},
		{
			what: "leases as long as those of the parent", child: leaseLeaf, childEdit: "lease:\n=>lease:\n  length: 22500ms\n",
			parent: leaseMiddle, want: "leaf.yaml:4:11: lease.length: leases of 22.5s do not end before those of the parent, 22.5s, " +
				"which cuts them: use at least 8s and less than 22.5s, or a longer one in root.yaml",
		},
		{
			what: "a default that is too long", child: leaseLeaf, parent: leaseRoot, parentEdits: []string{"resources:=>length: 8s\n  resources:"},
			want: "leaf.yaml:4:3: lease.length: leases of 15s do not end before those of the parent, 8s, which cuts them: use a longer one in root.yaml",
		},
		{
			what: "no authentication", child: leaseLeaf, parent: leaseRoot, parentEdits: []string{noAuth, noHolders},
			want: "root.yaml:3:9: server.grpc: no client has a name, so none may be a server below this one: write auth: token, and mark " +
				"the caller of leaf.yaml with server: true in lease.holders",
		},
		{
			what: "no token", child: leaseLeaf, childEdit: "  token_file: lease.token\n=>", parent: leaseRoot,
			want: "leaf.yaml:4:3: lease.token_file: is missing, and root.yaml refuses clients without a token: write the file with the",
		},
		{
			what: "a token of another server", child: leaseLeaf, parent: leaseRoot, token: "other",
			want: "leaf.yaml:5:15: lease.token_file: no caller of root.yaml has this token: use the token of a caller, or make one with",
		},
		{
			what: "a caller without the scope", child: leaseClient, parent: leaseRoot, parentEdits: []string{"[lease]=>[decide]", noHolders},
			want: `root.yaml:5:113: server.callers[0].scopes: caller "leaf" of leaf.yaml does not have the scope lease: add it to its scopes`,
		},
		{
			what: "a caller that is no server", child: leaseLeaf, parent: leaseMiddle, parentEdits: []string{noServer},
			want: `root.yaml:7:19: lease.holders.leaf: caller "leaf" of leaf.yaml may not be a server: write leaf: {server: true} in lease.holders`,
		},
		{
			what: "no caller is a server", child: leaseLeaf, parent: leaseRoot, parentEdits: []string{noServer}, offline: true,
			want: "root.yaml:7:12: lease.holders: has no caller with server: true, so no server may be below this one: add the caller of leaf.yaml",
		},
		{
			what: "a master that is not followed", child: leaseLeaf, parent: leaseRoot,
			parentEdits: []string{"resources:=>election: {etcd: [127.0.0.1:2379], group: eu, address: \"eu-2.example.com:8081\"}\n  resources:"},
			want: `leaf.yaml:4:12: lease.servers: "eu-2.example.com:8081", the lease.election.address of root.yaml, is missing, so this ` +
				"server gets nothing while it is the master: add it",
		},
		{
			what: "a resource that the root does not have", child: leaseLeaf, childEdit: "db/{1}/rows=>web/{1}/a{2}", parent: leaseRoot,
			want: `leaf.yaml:7:70: rules[0].lease: no entry of lease.resources in root.yaml matches "web/{1}/a{2}": add one there, like ` +
				`{match: "web/*/a*", capacity: 500/s}`,
		},
		{what: "another end", child: leaseLeaf, childEdit: "/rows=>/row", parent: leaseRoot, want: "leaf.yaml:7:70: rules[0].lease: no entry of"},
		{what: "a name that is too long", child: leaseLeaf, childEdit: "db/{1}/rows=>mai{1}il", parent: leaseRoot, want: "leaf.yaml:7:70: rules[0]"},
		{what: "another name", child: leaseLeaf, childEdit: "db/{1}/rows=>mails", parent: leaseRoot, want: "leaf.yaml:7:70: rules[0].lease: no"},
		{
			what: "slots", child: leaseLeaf, childEdit: "db/{1}/rows=>jobs", parent: leaseRoot,
			want: `leaf.yaml:7:70: rules[0].lease: "jobs" has slots in root.yaml: use a resource with a rate, like 500/s`,
		},
	})
}

func runParents(t *testing.T, rows []parentRow) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, row := range rows {
		if row.token == "" {
			row.token = "token-of-leaf"
		}
		writeEdited(t, "lease.token", row.token+"\n")
		writeEdited(t, "leaf.yaml", row.child, row.childEdit)
		writeEdited(t, "root.yaml", row.parent, row.parentEdits...)
		child, err := config.Load("leaf.yaml")
		if err != nil {
			t.Fatalf("%s: %v", row.what, err)
		}
		parent, err := config.LoadParent("root.yaml")
		if err != nil {
			t.Fatalf("%s: %v", row.what, err)
		}
		got := ""
		switch err := child.CheckParent(parent, !row.offline).(type) { //nolint:errorlint // its type is promised
		case nil:
		case config.Faults:
			for _, f := range err {
				got += f.Headline() + "\n"
			}
		default:
			got = err.Error()
		}
		if (got == "") != (row.want == "") || !strings.HasPrefix(got, row.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: got\n%swant\n%s", row.what, got, row.want)
		}
	}
}

// writeEdited writes a text with other texts in place of some: old=>new.
func writeEdited(t *testing.T, name, text string, edits ...string) {
	t.Helper()
	for _, edit := range edits {
		if edit == "" {
			continue
		}
		old, other, _ := strings.Cut(edit, "=>")
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in\n%s", old, text)
		}
		text = strings.Replace(text, old, other, 1)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestParentCallersFile: the caller of a token may be in the file of callers, which is relative to the file of the parent.
func TestParentCallersFile(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	if err := os.Mkdir("root", 0o700); err != nil {
		t.Fatal(err)
	}
	callers, _, _ := strings.Cut(leaseCallers, "\nlease:")
	_, callers, _ = strings.Cut(callers, "  callers:")
	writeEdited(t, "lease.token", "token-of-leaf\n")
	writeEdited(t, "leaf.yaml", leaseLeaf)
	writeEdited(t, "root/headgate.yaml", leaseRoot, "  callers:"+callers+"=>  callers_file: callers.yaml")
	child, err := config.Load("leaf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parent, err := config.LoadParent("root/headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const missing = "root/headgate.yaml:4:17: server.callers_file: "
	if err := child.CheckParent(parent, true); err == nil || !strings.HasPrefix(err.Error(), missing) {
		t.Errorf("without the file: got %v, want %s", err, missing)
	}
	writeEdited(t, "root/callers.yaml", "callers:"+callers+"\n", "[lease]=>[decide]")
	const scope = `root/headgate.yaml:4:17: server.callers_file: caller "leaf" of leaf.yaml does not have the scope lease`
	if err := child.CheckParent(parent, true); err == nil || !strings.HasPrefix(err.Error(), scope) {
		t.Errorf("without the scope: got %v, want %s", err, scope)
	}
	writeEdited(t, "root/callers.yaml", "callers:"+callers+"\n")
	if err := child.CheckParent(parent, true); err != nil {
		t.Error(err)
	}
}

// TestParentHidesSecrets: a fault on the line of a password has no excerpt, and variables of this process do not change the parent.
func TestParentHidesSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	writeEdited(t, "leaf.yaml", `{lease: {servers: ["a:1"], length: 30s}, store_sentinel_password: secret,
  version: 1, server: {grpc: ":8082"}, store: "redis+sentinel://a:1/main"}`)
	writeEdited(t, "root.yaml", leaseRoot, "auth: token=>auth: none", "  holders: {leaf: {server: true}}\n=>")
	child, err := config.Load("leaf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HEADGATE_STORE", "redis://127.0.0.1:6379/0")
	parent, err := config.LoadParent("root.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if parent.Store != "memory" {
		t.Errorf("the store of the parent is %s", parent.Store)
	}
	err = child.CheckParent(parent, true)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "lease.length") {
		t.Errorf("got %v", err)
	}
}
