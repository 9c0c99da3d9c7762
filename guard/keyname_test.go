package guard_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// A key has the same name with and without a namespace.
func TestKeyNamesWithoutNamespace(t *testing.T) {
	const want = `header:X-Client-Id="me"`
	names := rule.PlainKeyNames()
	for _, space := range []string{"", "shop"} {
		rules := []guard.Rule{byClient(t, "product", "/p", headgate.Limit{Count: 1, Per: time.Hour})}
		g, _ := newGuard(t, guard.Config{Namespace: space, Rules: rules})
		r := &decide(t, g, request("/p", "me")).Results[0]
		if got := string(r.AppendKey(nil, names)); got != want {
			t.Errorf("namespace %q: %s, want %s", space, got, want)
		}
		if got := string(names.AppendKey(nil, string(r.AppendRawKey(nil)))); got != want {
			t.Errorf("namespace %q: the raw key reads %s, want %s", space, got, want)
		}
	}
}
