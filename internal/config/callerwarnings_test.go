package config

import (
	"strings"
	"testing"
	"time"
)

// TestCallerWarnings: settings of callers that are valid, and probably not meant.
func TestCallerWarnings(t *testing.T) {
	t.Parallel()
	const (
		digest = `tokens: ["sha256:9e2bdcc4d8c3b4a1d57d1b4f0c4a8f2b2ccf1e3e2b3a9f6d1c0b7a8e9f0d1c2b"]`
		byName = "certificate: spiffe://example.com/a"
		tls    = "tls: {cert: c.pem, key: k.pem, client_ca: ca.pem}"
	)
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		what, server, admin string
		want                []string
	}{
		{"no callers", "{}", "", nil},
		{"a token that is asked for", "{grpc: {auth: token}, callers: [{name: a, " + digest + ", scopes: [decide]}]}", "", nil},
		{"for the admin listener", "{callers: [{name: a, " + digest + ", scopes: [read]}]}", "{auth: token}", nil},
		{"no listener asks", "{callers: [{name: a, " + digest + ", scopes: [decide]}]}", "", []string{"callers have no effect"}},
		{
			"only listeners that are off ask", "{grpc: {address: off, auth: token}, callers: [{name: a, " + digest + ", scopes: [decide]}]}",
			"{listen: off, auth: token}",
			[]string{"callers have no effect"},
		},
		{"a limit of callers, and none", "{limits: {caller: 5/s}}", "", []string{"server.limits.caller has no effect"}},
		{"an end of today", "{grpc: {auth: token}, callers: [{name: a, " + digest + ", scopes: [decide], until: 2027-03-01}]}", "", nil},
		{
			"a past end", "{grpc: {auth: token}, callers: [{name: a, " + digest + ", scopes: [decide], until: 2027-02-28}]}", "",
			[]string{"caller a: the time until"},
		},
		{
			"a certificate and no mtls", "{grpc: {auth: token}, callers: [{name: a, " + byName + ", scopes: [decide]}]}", "",
			[]string{"caller a: the caller has a certificate only"},
		},
		{
			"a token and mtls only", "{grpc: {auth: mtls, " + tls + "}, callers: [{name: a, " + digest + ", scopes: [decide]}]}", "",
			[]string{"caller a: the caller has a token only"},
		},
		{
			"mtls and token", "{grpc: {auth: [token, mtls], " + tls + "}, callers: [{name: a, " + digest +
				", scopes: [decide]}, {name: b, " + byName + ", scopes: [decide]}]}", "", nil,
		},
	} {
		text := "version: 1\nrules: []\nserver: " + row.server + "\n"
		if row.admin != "" {
			text += "admin: " + row.admin + "\n"
		}
		c, err := Parse("headgate.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", row.what, err)
			continue
		}
		got := c.CallerWarnings(c.Server.Callers, now)
		if len(got) != len(row.want) {
			t.Errorf("%s: %q, want %q", row.what, got, row.want)
			continue
		}
		for i, want := range row.want {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: %q, want %q", row.what, got[i], want)
			}
		}
	}
}

// TestCallerWarningsOfManyCallers: three callers are named, and there may be no caller in a file.
func TestCallerWarningsOfManyCallers(t *testing.T) {
	t.Parallel()
	c := &Config{Server: &Server{}}
	c.Server.GRPC.Address, c.Server.GRPC.Auth = "127.0.0.1:8081", AuthToken
	if got := c.CallerWarnings(nil, time.Time{}); len(got) != 1 || !strings.HasPrefix(got[0], "there is no caller") {
		t.Errorf("without callers: %q", got)
	}
	all := []Caller{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	if got := c.CallerWarnings(all, time.Time{}); len(got) != 1 || !strings.HasPrefix(got[0], "caller a, b, c and 2 more: ") {
		t.Errorf("five callers without tokens: %q", got)
	}
	if got := (&Config{}).CallerWarnings(nil, time.Time{}); got != nil {
		t.Errorf("without a server: %q", got)
	}
}

// TestAdminWarnings: tokens without TLS are named where the network reaches the listener.
func TestAdminWarnings(t *testing.T) {
	for _, row := range []struct {
		admin Admin
		warns bool
	}{
		{Admin{Listen: "0.0.0.0:9902", Auth: AuthToken}, true},
		{Admin{Listen: "admin.example.com:9902", Auth: AuthToken}, true},
		{Admin{Listen: "0.0.0.0:9902", Auth: AuthToken, TLS: TLS{Cert: "a", Key: "b"}}, false},
		{Admin{Listen: "127.0.0.1:9902", Auth: AuthToken}, false},
		{Admin{Listen: "0.0.0.0:9902"}, false}, // Another warning says that it asks for no proof.
		{Admin{Auth: AuthToken}, false},
	} {
		if got := (&Config{Admin: row.admin}).AdminWarnings(); len(got) > 0 != row.warns {
			t.Errorf("%+v: %q", row.admin, got)
		}
	}
}
