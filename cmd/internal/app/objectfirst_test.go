package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/etcd"
)

// TestFirstObjects: an empty source gets everything object by object: plans, rules, customers, and then a second quota. The file names
// the default plan, and may have a rule already.
func TestFirstObjects(t *testing.T) {
	t.Parallel()
	const calls, both = "{quotas: {calls: [{limit: 9/30d}]}}", "{quotas: {calls: [{limit: 9/30d}], files: [{limit: 2/30d}]}}"
	for _, rules := range []string{"[]", "[{name: first, key: [header:X-Customer], quota: calls}]"} {
		t.Run(rules, func(t *testing.T) {
			t.Parallel()
			settings := fmt.Sprintf("source: {etcd: {endpoints: [%q]}}\ndefault_plan: free\nrules: %s\n", "http://"+etcd.Start(t).Addr, rules)
			i := startServer(t, serverOptions(t, settings))
			if err := i.ready(); err == nil || !strings.Contains(err.Error(), `plan "free" does not exist`) {
				t.Errorf("with an empty source, ready says %v", err)
			}
			if s := i.Status().Source; !strings.Contains(s.Failure, `plan "free" does not exist`) {
				t.Errorf("with an empty source, the status says %q", s.Failure)
			}
			for _, c := range []struct {
				verb, page, body string
				want             int
			}{
				{"GET", "/api/v1/plans", "", 200},
				{"PUT", "/api/v1/plans?name=paid&revision=0", calls, 422}, // The default plan comes first.
				{"PUT", "/api/v1/plans?name=free&revision=0&dry_run=1", calls, 200},
				{"PUT", "/api/v1/plans?name=free&revision=0", calls, 200},
				{"PUT", "/api/v1/plans?name=paid&revision=0", calls, 200},
				{"PUT", "/api/v1/rules?name=api&revision=0", "{key: [header:X-Customer], quota: calls}", 200},
				{"PUT", "/api/v1/customers?name=acme&revision=0", "{plan: paid}", 200},
				{"PUT", "/api/v1/customers?name=other&revision=0", "{limits: {flies: [{limit: 2/30d}]}}", 422},
				{"PATCH", "/api/v1/plans?name=paid&revision=REVISION", both, 200},
				{"PATCH", "/api/v1/plans?name=free&revision=REVISION", both, 200},
				{"PUT", "/api/v1/rules?name=fetch&revision=0", "{match: {path: /f}, key: [header:X-Customer], quota: files}", 200},
				{"DELETE", "/api/v1/rules?name=fetch&revision=REVISION", "", 200},
				{"DELETE", "/api/v1/rules?name=api&revision=REVISION", "", 200},
			} {
				page := strings.Replace(c.page, "REVISION", fmt.Sprint(revisionAt(t, i, c.page)), 1)
				if status, text := callAdmin(t, i, "", c.verb, page, c.body); status != c.want {
					t.Fatalf("%s %s: got %d %s, want %d", c.verb, page, status, text, c.want)
				}
			}
			if err := i.ready(); err != nil {
				t.Errorf("not ready: %v", err)
			}
		})
	}
}

// revisionAt gives the present revision of the object that a page names; 0 if the page does not need it.
func revisionAt(t *testing.T, i *Instance, page string) (revision int64) {
	t.Helper()
	page, _, needs := strings.Cut(page, "&revision=REVISION")
	if !needs {
		return 0
	}
	_, text := callAdmin(t, i, "", "GET", page, "")
	_, text, _ = strings.Cut(text, `"revision": `)
	if _, err := fmt.Sscan(text, &revision); err != nil {
		t.Fatal(err, text)
	}
	return revision
}

// TestEmptySourceAndAnotherFile: a reload whose file has what the source lacks puts the empty source in force.
func TestEmptySourceAndAnotherFile(t *testing.T) {
	d := serveDocument(t, `{"plans": {}}`)
	settings := fmt.Sprintf("source: {http: {url: %q}}\ndefault_plan: free\nrules: []\n", d.URL)
	o := serverOptions(t, settings)
	o.Load = func() (*config.Config, error) {
		return serverConfig(t, settings+"plans: {free: {quotas: {calls: [{limit: 9/1d}]}}}\n"), nil
	}
	i := startServer(t, o)
	if err := i.ready(); err == nil || !strings.Contains(err.Error(), "lacks an object that the file needs") {
		t.Errorf("with an empty source, ready says %v", err)
	}
	if err := i.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := i.Status().Source; i.ready() != nil || s.State != "followed" || s.Failure != "" {
		t.Errorf("after the reload: %v, %+v", i.ready(), s)
	}
}
