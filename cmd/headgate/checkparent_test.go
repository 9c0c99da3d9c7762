package main

import (
	"strings"
	"testing"
)

// named is a root whose callers have names.
var named = strings.NewReplacer("server: {grpc: \"127.0.0.1:8081\"}", "server: {grpc: {address: \"127.0.0.1:8081\", auth: token}, "+
	"callers: [{name: leaf, tokens: [\"sha256:"+strings.Repeat("0", 64)+"\"], scopes: [lease]}]}",
	"{resources", "{holders: {leaf: {server: true}}, resources").Replace(parentRoot)

const (
	parentRoot = "version: 1\nserver: {grpc: \"127.0.0.1:8081\"}\nlease: {resources: [{match: \"db/*\", capacity: 500/s}]}\n"
	parentUser = "version: 1\nproxy: {upstream: \"http://127.0.0.1:9000\"}\nlease: {servers: [\"a.example.com:8081\"], token_file: none}\n" +
		"rules: [{name: a, key: [ip], lease: \"db/{1}\", fallback: deny}]\n"
)

// TestCheckParent: --parent compares the file with those of the servers above.
func TestCheckParent(t *testing.T) {
	user, root := write(t, parentUser), write(t, parentRoot)
	web := write(t, strings.Replace(parentRoot, "db/*", "web/*", 1))
	faulty := write(t, strings.Replace(parentRoot, "500/s", "500/x", 1))
	for _, row := range []struct {
		what   string
		args   []string
		status int
		want   string
	}{
		{"a pair", []string{"--offline", user, "--parent", root}, exitOK, "\n" + root + " can give it leases\n"},
		{"all pairs", []string{"--offline", user, "--parent", root, "--parent", web}, exitUsage, "no entry of lease.resources in " + web},
		{"no file", []string{"--offline", user, "--parent", root + "x"}, exitUsage, "write the file, or name another with --parent"},
		{"a fault of the parent", []string{"--offline", user, "--parent", faulty}, exitUsage, faulty + ":3:51: lease.resources[0].capacity"},
		{"no file of the token", []string{user, "--parent", write(t, named)}, exitUsage, user + ":3:54: lease.token_file: "},
		{"with --explain", []string{user, "--parent", root, "--explain", "GET /"}, exitUsage, "leave it out with --schema, --explain"},
		{"with --schema", []string{"--parent", root, "--schema"}, exitUsage, "leave it out with --schema"},
	} {
		status, stdout, stderr := call(t, append([]string{"check"}, row.args...)...)
		if status != row.status || !strings.Contains(stdout+stderr, row.want) {
			t.Errorf("%s: status %d\n%s%s\nwant %d and %q", row.what, status, stdout, stderr, row.status, row.want)
		}
	}
	_, _, stderr := call(t, "check", "--offline", root, "--parent", root, "--parent", web)
	if strings.Count(stderr, "lease.servers: is missing") != 1 {
		t.Errorf("a fault of the file is not there once:\n%s", stderr)
	}
}

// TestCheckParentLengths: check says which lengths it compared.
func TestCheckParentLengths(t *testing.T) {
	root := write(t, named)
	leaf := write(t, "version: 1\nserver: {grpc: \"127.0.0.1:8082\"}\nlease: {servers: [\"a.example.com:8081\"], token_file: none}\n")
	status, stdout, stderr := call(t, "check", "--offline", leaf, "--parent", root)
	if want := root + " can be its parent: leases of 30s there, and of 15s here\n"; status != exitOK || !strings.Contains(stdout, want) {
		t.Errorf("status %d\n%s%s\nwant %q", status, stdout, stderr, want)
	}
}

// TestCheckWithoutParent: a file with a parent says what check alone cannot know.
func TestCheckWithoutParent(t *testing.T) {
	user, root := write(t, parentUser), write(t, parentRoot)
	for _, row := range []struct {
		args []string
		want bool
	}{
		{[]string{user}, true}, {[]string{user, "--parent", root}, false}, {[]string{root}, false},
	} {
		status, stdout, stderr := call(t, append([]string{"check", "--offline"}, row.args...)...)
		if status != exitOK || strings.Contains(stdout, "\n"+parentNote) != row.want {
			t.Errorf("%q: status %d, want a note: %t\n%s%s", row.args, status, row.want, stdout, stderr)
		}
	}
}
