package httplimit_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
)

// TestCheck checks that a guard that counts by descriptors cannot stand behind this front, also after a reload.
func TestCheck(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	users := keyed(t, "users", "", "descriptor:user")
	g := newGuard(t, store, users)
	err = httplimit.Check(g)
	if _, found := errortype.As[*guard.UnsuppliedError](err); !found || !strings.Contains(err.Error(), `rule "users" counts by descriptor:user, which package httplimit cannot give`) {
		t.Errorf("Check gives %v", err)
	}
	func() {
		defer func() {
			if text, _ := recover().(string); !strings.Contains(text, "descriptor:user") {
				t.Errorf("New panics with %q", text)
			}
		}()
		httplimit.New(g, httplimit.Options{})
	}()
	config := guard.Config{Rules: []guard.Rule{keyed(t, "users", "", "cookie:a")}, Store: g.Store()}
	if err := g.Reload(config); err != nil {
		t.Fatal(err)
	}
	httplimit.New(g, httplimit.Options{})
	config.Rules = []guard.Rule{users}
	if err := g.Reload(config); err == nil {
		t.Error("the reload takes a rule that counts by a descriptor")
	}
}
