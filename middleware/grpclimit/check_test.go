package grpclimit_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/middleware/grpclimit"
)

// TestCheck checks that a guard that counts by cookies cannot stand behind this front, also after a reload.
func TestCheck(t *testing.T) {
	users := limited(t, "users", "", one(), "ip", "cookie:a")
	g := newGuard(t, guard.Config{Rules: []guard.Rule{users}})
	err := grpclimit.Check(g)
	if _, found := errortype.As[*guard.UnsuppliedError](err); !found || !strings.Contains(err.Error(), `rule "users" counts by cookie:a, which package grpclimit cannot give`) {
		t.Errorf("Check gives %v", err)
	}
	func() {
		defer func() {
			if text, _ := recover().(string); !strings.Contains(text, "cookie:a") {
				t.Errorf("Unary panics with %q", text)
			}
		}()
		grpclimit.Unary(g, grpclimit.Options{})
	}()
	config := guard.Config{Rules: []guard.Rule{limited(t, "users", "", one(), "header:x-user", "mtls_subject")}, Store: g.Store()}
	if err := g.Reload(config); err != nil {
		t.Fatal(err)
	}
	grpclimit.Unary(g, grpclimit.Options{})
	config.Rules = []guard.Rule{users}
	if err := g.Reload(config); err == nil {
		t.Error("the reload takes a rule that counts by a cookie")
	}
}

// TestCheckOfOtherMethods checks that a rule that no call can match is no fault, and one for POST is.
func TestCheckOfOtherMethods(t *testing.T) {
	for _, row := range []struct {
		methods []string
		refused bool
	}{{[]string{"GET"}, false}, {[]string{"GET", "=POST"}, true}, {[]string{"POST"}, true}} {
		sessions := limited(t, "sessions", "", one(), "cookie:session")
		sessions.Match.Methods = row.methods
		g := newGuard(t, guard.Config{Rules: []guard.Rule{sessions}})
		if err := grpclimit.Check(g); (err != nil) != row.refused {
			t.Errorf("%q: Check gives %v", row.methods, err)
		}
		if !row.refused {
			grpclimit.Unary(g, grpclimit.Options{})
		}
	}
}

// TestCheckChangesNothing checks that a guard that was only checked takes every later rule.
func TestCheckChangesNothing(t *testing.T) {
	g := newGuard(t, guard.Config{})
	if err := grpclimit.Check(g); err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(guard.Config{Rules: []guard.Rule{limited(t, "users", "", one(), "cookie:a")}, Store: g.Store()}); err != nil {
		t.Error(err)
	}
}
