package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
)

// eventuallyIs waits until an answer of the admin listener has a text, or has it no longer.
func eventuallyIs(t *testing.T, url, text string, want bool) {
	t.Helper()
	var body string
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		if _, body = get(t, url); strings.Contains(body, text) == want {
			return
		}
	}
	t.Fatalf("%s: %q is there: %v, want %v, in\n%s", url, text, !want, want, body)
}

// answerDialog types a reason into the open dialog, and sends it.
func (c *consolePage) answerDialog(reason string) {
	c.t.Helper()
	c.until("document.querySelector('dialog[open]')?.contains(document.activeElement)")
	if reason != "" {
		c.tabTo("e.id === 'field-reason'")
		c.keys(reason)
	}
	c.tabTo("e.type === 'submit' && e.closest('dialog')")
	c.keys(keyEnter)
	c.until("!document.querySelector('dialog')")
	c.until("document.querySelector('.banner.good')")
}

// TestConsoleKeyboard does with the keyboard alone what an operator does at night: ask why, turn a rule to shadow and back, lift a ban. The
// live update moves no focus.
func TestConsoleKeyboard(t *testing.T) {
	t.Parallel()
	i := startConsole(t)
	api := "http://" + i.Admin + "/api/v1/"
	c := openConsole(t, i.Admin, "overview")
	c.until("document.querySelector('#rules tbody tr')")
	for n, view := range []string{"overview", "clients", "keys", "throttle", "instances", "quotas", "why"} {
		c.keys(fmt.Sprint(n + 1))
		c.until(fmt.Sprintf("document.querySelector('main.view-%s')", view))
	}
	c.keys("1")
	c.until("document.querySelector('#rules tbody tr')")
	c.keys("/")
	c.until("document.activeElement.id === 'question'")
	c.keys(keyEscape)
	c.until("document.activeElement === document.body")
	c.keys(" ")
	c.until("document.querySelector('#pause').getAttribute('aria-pressed') === 'true'")
	c.keys(" ")
	c.until("document.querySelector('#pause').getAttribute('aria-pressed') === 'false'")

	c.keys("/")
	c.until("document.activeElement.id === 'question'")
	// The browser of a test writes the slash too, although the page has prevented it: a protocol event stands for each half of a key.
	valueOf[string](c, "document.activeElement.value = ''")
	c.keys("acme GET /search" + keyEnter)
	c.until("location.hash.startsWith('#/why?') && document.querySelector('#why-path')?.value === '/search'")
	c.until("document.querySelector('#verdict')?.textContent.length > 10 && document.querySelectorAll('.steps > li').length >= 4")
	c.until("document.querySelector('.steps')?.innerText.includes('search')")

	c.until("document.activeElement.id === 'question'")
	c.keys(keyEscape + "1")
	c.until("document.querySelector('#rules tbody tr')")
	c.tabTo("e.textContent === 'search' && e.closest('#rules')")
	sequence := valueOf[int64](c, "import('/console/state.js').then((m) => m.state.live.sequence)")
	for valueOf[int64](c, "import('/console/state.js').then((m) => m.state.live.sequence)") < sequence+2 {
		<-time.After(50 * time.Millisecond)
	}
	c.until("document.activeElement.textContent === 'search'")
	c.keys(keyEnter)
	c.until("document.querySelector('main.view-rule h1')?.textContent === 'Rule search'")
	c.tabTo("e.textContent === 'Turn to shadow…'")
	c.keys(keyEnter)
	c.until("document.querySelector('dialog[open]')")
	for range 12 {
		c.keys(keyTab)
		if !valueOf[bool](c, "document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))") {
			t.Fatal("the focus leaves the dialog")
		}
	}
	c.keys(keyEscape)
	c.until("!document.querySelector('dialog') && document.activeElement.textContent === 'Turn to shadow…'")
	c.keys(keyEnter)
	c.answerDialog("a load test")
	eventuallyIs(t, api+"mode", `"shadow"`, true)
	c.tabTo("e.id === 'undo'")
	c.keys(keyEnter)
	c.answerDialog("")
	eventuallyIs(t, api+"mode", `"shadow"`, false)

	c.tabTo("e.id === 'try'")
	c.keys(keyEnter)
	c.until("document.activeElement.id === 'field-limits'")
	c.keys("5/1s")
	c.answerDialog("a better limit")
	c.until("document.querySelector('#trials')?.innerText.includes('5/1s')")
	eventuallyIs(t, api+"trials", "a better limit", true)
	c.until("document.querySelector('#trials tbody tr:last-child td.number')?.innerText !== ''")

	c.keys("3")
	c.until("document.querySelector('#bans button')")
	c.tabTo("e.closest('#bans') && e.textContent === 'Lift…'")
	c.keys(keyEnter)
	c.answerDialog("a mistake")
	c.until("document.querySelector('.banner.good')?.innerText.includes('The ban of botnet is lifted')")
	c.check("actions")
}

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
	c.until("document.querySelector('#sentence')")
	kept := valueOf[string](c, "[document.cookie, JSON.stringify(localStorage), location.href, Object.values(sessionStorage).join()].join('|')")
	if parts := strings.Split(kept, "|"); parts[0] != "" || strings.Contains(parts[1]+parts[2], "hg_right") || parts[3] != "hg_right" {
		t.Errorf("cookies, local storage, address and storage of the tab: %s", kept)
	}
	c.check("token")
}
