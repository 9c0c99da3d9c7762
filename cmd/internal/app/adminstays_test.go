package app

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin/listener"
)

// ofTokens is a section server with a caller, for admin.auth.
var ofTokens = "server: {callers: [{name: a, tokens: ['sha256:" + strings.Repeat("0", 64) + "'], scopes: [read]}]}"

func (c *changeable) admin(t *testing.T) *listener.Component {
	t.Helper()
	for _, p := range c.components {
		if a, ok := p.(*listener.Component); ok {
			return a
		}
	}
	t.Fatal("the instance has no admin listeners")
	return nil
}

// besideAnother starts an instance whose admin.listen asks for tokens, beside another program that has the same port at 127.0.0.2.
func besideAnother(t *testing.T) (c *changeable, port string) {
	t.Helper()
	c = launch(t)
	c.reload(t, `admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0", auth: token}`, ofTokens)
	_, port, _ = net.SplitHostPort(c.Addresses().Admin)
	other, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return c, port
}

// TestListenerThatStaysKeepsItsAuth: a listener that cannot move asks for what it asked before, not for what the new address would
// ask. It is not closed again for a change of other settings, and is moved by a later reload of the file.
func TestListenerThatStaysKeepsItsAuth(t *testing.T) {
	c, port := besideAnother(t)
	c.reload(t, `admin: {listen: "0.0.0.0:`+port+`", health: "127.0.0.1:0"}`)
	holds := func(when string) {
		t.Helper()
		if code, _ := get(t, "127.0.0.1:"+port+"/api/v1/status"); code != http.StatusUnauthorized {
			t.Errorf("%s: without a token, the status is %d", when, code)
		}
		if failures := c.Status().Reload.Failures; len(failures) != 1 || failures[0].Part != "admin.listen" {
			t.Errorf("%s: the failures are %+v", when, failures)
		}
	}
	holds("after the move failed")
	if text := c.log.String(); !strings.Contains(text, "with its former auth") {
		t.Errorf("the log does not say what the listener asks for: %s", text)
	}
	stayed := c.admin(t).Servers()[0]
	c.reloading.Lock()
	err := c.apply(c.components, c.next) // as for a change of objects
	c.reloading.Unlock()
	if err != nil || c.admin(t).Servers()[0] != stayed {
		t.Errorf("a change of other settings closes the listener again: %v", err)
	}
	holds("after a change of other settings")
	if err := c.Reload(); err != nil {
		t.Error(err)
	}
	holds("after another reload")
	c.reload(t, adminPorts)
	if code, _ := get(t, "127.0.0.1:"+port+"/api/v1/status"); code != http.StatusOK {
		t.Errorf("after the former address was given without auth, the status is %d", code)
	}
}

// TestAddressOfAnotherProgram: an address that another program has, and the own listener does not, refuses the reload also if the
// port is the same. The listener is not closed.
func TestAddressOfAnotherProgram(t *testing.T) {
	c, port := besideAnother(t)
	before := c.admin(t).Servers()[0]
	c.change(t, `admin: {listen: "127.0.0.2:`+port+`", health: "127.0.0.1:0"}`)
	if err := c.Reload(); err == nil || !strings.Contains(err.Error(), "admin.listen") {
		t.Errorf("the reload answers %v", err)
	}
	if c.admin(t).Servers()[0] != before {
		t.Error("the listener was closed")
	}
	if code, _ := get(t, "127.0.0.1:"+port+"/api/v1/status"); code != http.StatusUnauthorized {
		t.Errorf("without a token, the status is %d", code)
	}
}

// TestFormerAddressKeepsItsTerms: connections that are still open to a former address get neither the rights of a loopback address
// nor a missing auth of the new one. They get its stricter auth.
func TestFormerAddressKeepsItsTerms(t *testing.T) {
	c := launch(t)
	for _, row := range []struct {
		former, next string
		page         string
		want         int
	}{
		{`{listen: "0.0.0.0:0"}`, `{listen: "127.0.0.1:0"}`, "POST /api/v1/reload", http.StatusForbidden},
		{`{listen: "0.0.0.0:0", auth: token}`, `{listen: "127.0.0.1:0"}`, "GET /api/v1/status", http.StatusUnauthorized},
		{`{listen: "127.0.0.2:0"}`, `{listen: "127.0.0.1:0", auth: token}`, "GET /api/v1/status", http.StatusUnauthorized},
	} {
		c.reload(t, "admin: "+row.former, ofTokens)
		former := c.admin(t).Servers()[0]
		c.reload(t, "admin: "+row.next, ofTokens)
		if now := c.admin(t).Servers()[0]; now == former {
			t.Fatalf("%s: the listener has not moved", row.next)
		}
		verb, path, _ := strings.Cut(row.page, " ")
		w := httptest.NewRecorder()
		former.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), verb, "http://127.0.0.1:9902"+path, http.NoBody))
		if w.Code != row.want {
			t.Errorf("from %s to %s: at the former address, %s answers %d, want %d", row.former, row.next, row.page, w.Code, row.want)
		}
	}
}
