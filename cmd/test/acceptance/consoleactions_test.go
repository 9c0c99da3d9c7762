package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// TestConsoleToken: the page asks for the token, keeps it in the tab, and sends it in a header alone.
func TestConsoleToken(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256([]byte("hg_right"))
	i := launch(t, file(t, fmt.Sprintf(`version: 1
max_memory: 16MiB
rules: [{name: search, key: [ip], limits: ["2/1h"]}]
proxy: {listen: "127.0.0.1:0", upstream: "http://127.0.0.1:9"}
server: {callers: [{name: ann, tokens: ["sha256:%s"], scopes: [read, administer]}]}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0", auth: token}
`, hex.EncodeToString(digest[:]))))
	c := openConsole(t, i.Admin, "overview")
	for _, token := range []string{"hg_wrong", "hg_right"} {
		c.until("document.querySelector('#token')")
		for _, violation := range c.violations() {
			t.Errorf("the form: %s", violation)
		}
		c.tabTo("e.id === 'token'")
		c.keys(token + keyEnter)
		if token == "hg_wrong" {
			c.until("document.querySelector('.gate [role=alert]')?.innerText.includes('not valid')")
			valueOf[string](c, "document.querySelector('#token').value = ''")
		}
	}
	c.until("!document.querySelector('.gate')")
	kept := valueOf[string](c, "[document.cookie, JSON.stringify(localStorage), location.href, Object.values(sessionStorage).join()].join('|')")
	if parts := strings.Split(kept, "|"); parts[0] != "" || strings.Contains(parts[1]+parts[2], "hg_right") || parts[3] != "hg_right" {
		t.Errorf("cookies, local storage, address and storage of the tab: %s", kept)
	}
	c.check("token")
}
