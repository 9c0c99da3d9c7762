package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// ctlOf is a command of headgate ctl that must succeed.
func ctlOf(t *testing.T, i *instance, args ...string) string {
	t.Helper()
	status, out, stderr := call(t, append([]string{"ctl", "--admin", i.Admin}, args...)...)
	if status != 0 {
		t.Fatalf("ctl %v: status %d: %s%s", args, status, out, stderr)
	}
	return out
}

// undoOf gives the words of the command that a text names, without the name of the program and the subcommand ctl.
func undoOf(t *testing.T, text string) []string {
	t.Helper()
	_, command, found := strings.Cut(text, "undo: headgate ctl ")
	if command, _, _ = strings.Cut(command, "\n"); !found || strings.Contains(command, "'") {
		t.Fatalf("no command without quotes undoes:\n%s", text)
	}
	return strings.Fields(command)
}

// passes counts the requests of a client and a path that pass, of n.
func passes(t *testing.T, i *instance, client, path string, n int) (passed int) {
	t.Helper()
	for range n {
		if r, _ := get(t, "http://"+i.Proxy+path, "X-Client-Id", client); r.StatusCode == http.StatusOK {
			passed++
		}
	}
	return passed
}

// TestRaiseOneCustomer: one customer is raised for a time, under a key of two parts, in place of an override of the file. Used units stay
// counted, the limit survives a reload and ends by itself, and the printed command undoes each step.
func TestRaiseOneCustomer(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, `version: 1
log: {keys: plain}
rules:
  - name: product
    key: [header:X-Client-Id, path]
    limits: ["3/1d"]
    algorithm: fixed_window
    overrides: {gold: {limits: ["4/1d"]}, "b*": {limits: ["1/1d"]}}
proxy: {listen: 127.0.0.1:0, upstream: %q}
`, behind.URL)
	if n := passes(t, i, "acme", "/a", 5); n != 3 {
		t.Fatalf("%d requests pass, want 3", n)
	}
	dry := ctlOf(t, i, "key", "limit", "product", "acme", "--limits", "5/1d", "--for", "1h", "--dry-run")
	if !strings.Contains(dry, "acme of rule product would have 5/1d, and had 3/1d") || passes(t, i, "acme", "/a", 1) != 0 {
		t.Errorf("the dry run prints:\n%s", dry)
	}
	out := ctlOf(t, i, "key", "limit", "product", "acme", "--limits", "5/1d", "--for", "1h", "--reason", "launch of acme")
	if !strings.Contains(out, "acme of rule product has 5/1d, and had 3/1d, until") || !strings.Contains(out, "further parts") {
		t.Errorf("the command prints:\n%s", out)
	}
	i.hangup(t)
	if a, b, other := passes(t, i, "acme", "/a", 5), passes(t, i, "acme", "/b", 9), passes(t, i, "else", "/a", 9); a != 2 || b != 5 || other != 3 {
		t.Errorf("%d and %d of acme and %d of another client pass, want 2, 5 and 3", a, b, other)
	}
	if list := ctlOf(t, i, "key", "limits"); !strings.Contains(list, "launch of acme") || !strings.Contains(ctlOf(t, i, "status"), "LIMIT OF A KEY") {
		t.Errorf("the list is:\n%s", list)
	}
	again := ctlOf(t, i, "key", "limit", "product", "header:X-Client-Id=acme", "--unlimited", "--for", "1h")
	if n := passes(t, i, "acme", "/a", 9); n != 9 || !strings.Contains(again, "has unlimited, and had 5/1d") {
		t.Errorf("%d requests pass:\n%s", n, again)
	}
	ctlOf(t, i, undoOf(t, again)...)
	if n := passes(t, i, "acme", "/c", 9); n != 5 {
		t.Errorf("after the undo of unlimited, %d requests pass, want 5", n)
	}
	ctlOf(t, i, undoOf(t, out)...)
	if n := passes(t, i, "acme", "/d", 9); n != 3 || !strings.Contains(ctlOf(t, i, "key", "limits"), "no key has limits") {
		t.Errorf("after the undo, %d requests pass, want 3", n)
	}
	for client, want := range map[string]int{"gold": 4, "bronze": 1} {
		ctlOf(t, i, "key", "limit", "product", client, "--limits", "7/1d", "--for", "2s")
		if n := passes(t, i, client, "/a", 9); n != 7 {
			t.Errorf("%d requests of %s pass, want 7", n, client)
		}
		eventually(t, "the end", func() bool { return strings.Contains(ctlOf(t, i, "key", "limits"), "no key has limits") })
		if n := passes(t, i, client, "/b", 9); n != want {
			t.Errorf("after the end, %d requests of %s pass, want %d", n, client, want)
		}
	}
	for args, want := range map[string]string{
		"prodct acme --unlimited --for 1h": "did you mean product?", "product acme --limits 5/x --for 1h": "period", "product acme --end": "no limits of the run time",
		"product acme /a --unlimited --for 1h": "write this value alone", "product (missing) --unlimited --for 1h": "no value that could have limits",
		"product acme --unlimited --for 32d": "1s to 31d", "product acme --unlimited": "--for is missing",
	} {
		args := append([]string{"ctl", "--admin", i.Admin, "key", "limit"}, strings.Fields(args)...)
		if status, _, stderr := call(t, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}

// TestRaiseInAllInstances: with a source, one command raises a customer in each instance, and one ends it.
func TestRaiseInAllInstances(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	text := fmt.Sprintf(`version: 1
source: {etcd: {endpoints: [%q]}}
store: redis://%s
store_timeout: 10s
deny_cache: 0
rules:
  - {name: product, key: [header:X-Client-Id], limits: ["3/1d"], algorithm: fixed_window}
proxy: {listen: "127.0.0.1:0", upstream: %q}
`, "http://"+etcd.Start(t).Addr, redis.Start(t).Addr, behind.URL) + adminAnywhere
	first, second := launch(t, file(t, text)), launch(t, file(t, text))
	if n := passes(t, first, "acme", "/", 2) + passes(t, second, "acme", "/", 3); n != 3 {
		t.Fatalf("%d requests pass, want 3", n)
	}
	out := ctlOf(t, first, "key", "limit", "product", "acme", "--limits", "5/1d", "--for", "1h", "--reason", "launch")
	if !strings.Contains(out, "in all instances with the source") {
		t.Errorf("the command prints:\n%s", out)
	}
	eventually(t, "the limit in the other instance", func() bool { return strings.Contains(ctlOf(t, second, "key", "limits"), "in all instances") })
	if n := passes(t, second, "acme", "/", 1) + passes(t, first, "acme", "/", 3); n != 2 {
		t.Errorf("%d further requests pass, want 2", n)
	}
	ctlOf(t, second, undoOf(t, out)...)
	eventually(t, "the end in the first instance", func() bool { return strings.Contains(ctlOf(t, first, "key", "limits"), "no key has limits") })
	if audit := ctlOf(t, first, "audit", "modes/limits"); !strings.Contains(audit, "launch") || !strings.Contains(audit, "key limit end") {
		t.Errorf("the records are:\n%s", audit)
	}
}

// TestActionsAndTheirUndo: the list has what operators did, and each command that it names brings the former state back.
func TestActionsAndTheirUndo(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, `version: 1
log: {keys: plain}
rules:
  - {name: product, key: [header:X-Client-Id], limits: ["1/1d"], algorithm: fixed_window}
  - {name: other, key: [header:X-Client-Id], limits: ["1000000/1d"], mode: shadow}
proxy: {listen: 127.0.0.1:0, upstream: %q}
`, behind.URL)
	passes(t, i, "a", "/", 1)
	var night string
	for _, step := range []struct {
		args  []string
		after int // requests that pass, of one, after the action
	}{
		{[]string{"mode", "shadow", "product", "--reason", "wrong refusals"}, 1},
		{[]string{"mode", "enforce", "--percent", "50", "product", "other", "--for", "2h"}, -1},
		{[]string{"trial", "start", "product", "5/1d"}, -1},
		{[]string{"key", "limit", "product", "b", "--limits", "2/1d", "--for", "1h"}, -1},
		{[]string{"key", "ban", "product", "b", "--for", "1h", "--reason", "abuse of b"}, -1},
	} {
		out := ctlOf(t, i, step.args...)
		if !strings.Contains(out, "undo: headgate ctl ") {
			t.Errorf("%v prints no undo:\n%s", step.args, out)
		}
		if n := passes(t, i, "a", "/", 1); step.after >= 0 && n != step.after {
			t.Errorf("after %v, %d requests pass", step.args, n)
		}
		night += out
	}
	list := func() []admin.Action {
		var all admin.Actions
		if err := json.Unmarshal([]byte(ctlOf(t, i, "actions", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return all.Actions
	}
	all := list()
	if len(all) != 5 || all[0].Action != "ban" || all[0].Reason != "abuse of b" || all[0].Undo != "headgate ctl key unban product b" {
		t.Fatalf("the actions are %+v", all)
	}
	ids := bansOf(t, i)
	if out := ctlOf(t, i, "bans", "lift", ids[0].ID, "--dry-run", "--reason", "a mistake"); !strings.Contains(out, "would be lifted") || len(bansOf(t, i)) != 1 {
		t.Errorf("the dry run of lift: %s", out)
	}
	for _, a := range all {
		for command := range strings.SplitSeq(a.Undo, " && ") {
			ctlOf(t, i, strings.Fields(strings.TrimPrefix(command, "headgate ctl "))...)
		}
	}
	if len(modesOf(t, i)) != 0 || len(trialsOf(t, i)) != 0 || len(bansOf(t, i)) != 0 || !strings.Contains(ctlOf(t, i, "key", "limits"), "no key") {
		t.Errorf("after all undos: %s", ctlOf(t, i, "status"))
	}
	if n := passes(t, i, "a", "/", 1); n != 0 {
		t.Error("the rule refuses no more")
	}
	ctlOf(t, i, "key", "ban", "product", "b", "--for", "1h")
	ctlOf(t, i, "bans", "lift", bansOf(t, i)[0].ID, "--reason", "a mistake")
	if last := list()[0]; last.Action != "lift" || last.Reason != "a mistake" || !strings.HasPrefix(last.Object, "keys/product ") {
		t.Errorf("the last action is %+v", last)
	}
	if text := ctlOf(t, i, "actions"); !strings.Contains(text, "undo: headgate ctl mode file product") || !strings.Contains(text, "wrong refusals") {
		t.Errorf("the list is:\n%s", text)
	}
}
