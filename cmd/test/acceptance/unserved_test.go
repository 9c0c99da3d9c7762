package acceptance

import (
	"strings"
	"testing"
)

// TestProxyWarnsOfSectionsOfTheServer: headgate proxy names the sections that it does not serve, and
// headgate check says that nothing decides the domains.
func TestProxyWarnsOfSectionsOfTheServer(t *testing.T) {
	t.Parallel()
	const domains = "version: 1\nrules: []\nproxy: {listen: \"127.0.0.1:0\", upstream: \"http://127.0.0.1:9\"}\n" +
		"domains: {shop: {descriptors: [{key: client, limits: 1/1h}]}}\n" + adminAnywhere
	const note = "domains have no effect in headgate proxy: headgate server decides them, and needs a section server\n"
	path := file(t, domains)
	if status, text, _ := call(t, "check", path); status != 0 || !strings.Contains(text, note) {
		t.Errorf("check without a server: status %d\n%s", status, text)
	}
	both := file(t, domains+"server: {grpc: \"127.0.0.1:0\", http: off}\n")
	if status, text, _ := call(t, "check", both); status != 0 || strings.Contains(text, "no effect") {
		t.Errorf("check with a server: status %d\n%s", status, text)
	}
	i := launch(t, both)
	for _, section := range []string{"server", "domains"} {
		eventually(t, "the warning of "+section, func() bool {
			return strings.Contains(i.text(), `has no effect in headgate proxy: headgate server serves it","section":"`+section+`"`)
		})
	}
}
