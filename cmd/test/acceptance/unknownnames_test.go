package acceptance

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUnknownNames: each command of ctl that takes a name refuses one that nothing has, prints nothing else, and exits with 1. A customer
// without an entry has the default plan, so quota usage and quota reset take its name. The text
// of an object that exists ends with a newline.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := launch(t, file(t, fmt.Sprintf(`version: 1
rules: [{name: exports, key: ["header:X-Customer"], quota: api}]
plans: {free: {quotas: {api: [{limit: 3/month}]}}}
default_plan: free
customers: {acme: {plan: free}}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`, behind.URL)+adminAnywhere))
	for _, args := range []string{
		"top nosuch", "leases nosuch", "bans lift nosuch", "quota get nosuch", "quota delete nosuch",
		"plan get nosuch", "plan delete nosuch", "rule get nosuch", "rule delete nosuch", "quota plan nosuch free", "quota reset acme nosuch", "audit customers/nosuch",
	} {
		status, out, stderr := call(t, append([]string{"ctl", "--admin", i.Admin}, strings.Fields(args)...)...)
		if status != 1 || out != "" || !strings.HasPrefix(stderr, "headgate: ctl: ") || strings.Contains(stderr, "same version") {
			t.Errorf("ctl %s: status %d, %q %q", args, status, out, stderr)
		}
	}
	for _, args := range []string{"rule get exports", "plan get free", "quota get acme"} {
		status, out, stderr := call(t, append([]string{"ctl", "--admin", i.Admin}, strings.Fields(args)...)...)
		if status != 0 || !strings.HasSuffix(out, "\n") || strings.HasSuffix(out, "\n\n") {
			t.Errorf("ctl %s: status %d, %q %q", args, status, out, stderr)
		}
	}
}
