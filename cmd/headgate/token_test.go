package main

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/internal/config"
)

// TestToken: the printed lines are a configuration whose caller has the printed token, whatever YAML takes its name for.
func TestToken(t *testing.T) {
	for _, name := range []string{"checkout", "null", "Null", "-", "---", "-a", ".", "...", "_", "1e3", "0x1f", "true", "2027-01-31"} {
		testToken(t, name)
	}
}

func testToken(t *testing.T, name string) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run([]string{"token", "--scope", "decide,read", "--until", "2099-12-31", "--", name}, &out, &errs); status != exitOK {
		t.Fatalf("exit status %d: %s", status, errs.String())
	}
	token := strings.TrimSuffix(out.String(), "\n")
	if strings.ContainsAny(token, " \n") || strings.Contains(errs.String(), token) {
		t.Errorf("the token is %q, and the rest %q", token, errs.String())
	}
	_, lines, _ := strings.Cut(errs.String(), "\nserver:")
	lines, _, _ = strings.Cut(lines, "\n\n")
	c, err := config.Parse("f", []byte("version: 1\nrules: []\nserver:"+lines+"\n"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	all := c.Server.Callers
	if len(all) != 1 || all[0].Name != name || all[0].Scopes != config.ScopeDecide|config.ScopeRead || all[0].Until.Year() != 2100 {
		t.Errorf("got %+v", all)
	}
	if digest := access.DigestOf(token); hex.EncodeToString(all[0].Tokens[0][:]) != hex.EncodeToString(digest[:]) {
		t.Error("the digest is not that of the token")
	}
}

// TestTokenUsage lists wrong arguments, and what the error says.
func TestTokenUsage(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"token"}, "the name of the caller is not valid"},
		{[]string{"token", "a b"}, "the name of the caller is not valid"},
		{[]string{"token", "a", "--scope", "all"}, "use decide, send_limits, read, administer or lease"},
		{[]string{"token", "a", "--scope", "decide,lease", "--scope", "decide"}, "--scope decide appears twice"},
		{[]string{"token", "a", "--until", "tomorrow"}, "write a date like"},
		{[]string{"token", "a", "--until", "2020-01-31"}, "--until 2020-01-31 is over"},
	} {
		var out, errs bytes.Buffer
		if status := run(row.args, &out, &errs); status != exitUsage || !strings.Contains(errs.String(), row.want) || out.Len() > 0 {
			t.Errorf("%q: exit status %d, %s", row.args, status, errs.String())
		}
	}
}
