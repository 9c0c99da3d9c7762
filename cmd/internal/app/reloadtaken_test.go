package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/process"
)

// changeable is an instance whose next configuration a test chooses. The section admin of its first one is on free ports.
type changeable struct {
	*Instance

	upstream string
	next     *config.Config
	log      *logs.Text
}

const adminPorts = `admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}`

// launch starts an instance with more settings.
func launch(t *testing.T, settings ...string) *changeable {
	t.Helper()
	o := options(t)
	c := &changeable{upstream: o.Config.Proxy.Upstream.String(), log: new(logs.Text)}
	c.change(t, append(settings, adminPorts)...)
	o.Config, o.Load = c.next, func() (*config.Config, error) { return c.next, nil }
	o.Level = new(slog.LevelVar)
	o.Log = slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: o.Level}))
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Stop() })
	c.Instance = i
	return c
}

// change sets the next configuration. The rule refuses everything, and the proxy listens on a free port.
func (c *changeable) change(t *testing.T, settings ...string) {
	t.Helper()
	text := "version: 1\nmax_memory: 1MiB\nrules:\n  - {name: client, key: [header:X-Client-Id], limits: [\"0/1h\"]}\n" +
		strings.Join(settings, "\n") + "\n"
	if !strings.Contains(text, "\nproxy: ") {
		text += "proxy: {listen: \"127.0.0.1:0\", upstream: \"" + c.upstream + "\"}\n"
	}
	next, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c.next = next
}

// reload changes the configuration, and puts it in force.
func (c *changeable) reload(t *testing.T, settings ...string) {
	t.Helper()
	c.change(t, settings...)
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
}

// send sends a request of a client to the proxy.
func (c *changeable) send(t *testing.T, client string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.Addresses().Proxy+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Client-Id", client)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestReloadNamesWhatWaits: the answer of a reload and the status name each changed setting that waits for a restart, until the
// configuration has the value of the start again.
func TestReloadNamesWhatWaits(t *testing.T) {
	c := launch(t)
	for _, row := range []struct {
		settings []string
		code     int
		waiting  []string
	}{
		{[]string{adminPorts}, http.StatusOK, nil},
		{[]string{adminPorts, "log: {format: text, level: debug}", "on_full: allow"}, http.StatusAccepted, []string{"on_full", "log.format"}},
		{[]string{adminPorts, "log: {format: text}"}, http.StatusAccepted, []string{"log.format"}},
		// The instance serves no section server.
		{[]string{adminPorts, "server: {grpc: {max_streams: 5}}"}, http.StatusOK, nil},
		{[]string{adminPorts, `proxy: {listen: ":1", upstream: "` + c.upstream + `", max_requests: 5}`}, http.StatusAccepted, []string{"proxy.listen", "proxy.max_requests"}},
	} {
		c.change(t, row.settings...)
		code, s := reloadOver(t, c.Instance)
		if code != row.code || !slices.Equal(s.Waiting, row.waiting) {
			t.Errorf("%q: status %d, %q wait for a restart, want %d and %q", row.settings, code, s.Waiting, row.code, row.waiting)
		}
		if kept := c.Status().Reload.Waiting; !slices.Equal(kept, row.waiting) {
			t.Errorf("%q: the status has %q, want %q", row.settings, kept, row.waiting)
		}
	}
}

// TestReloadOfKeys: log.keys, its secret, log.level and log.decisions take effect at a reload, in each log and in ctl top.
func TestReloadOfKeys(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	access, secret := filepath.Join(folder, "access.log"), filepath.Join(folder, "secret")
	if err := os.WriteFile(secret, bytes.Repeat([]byte("s"), 32), 0o600); err != nil {
		t.Fatal(err)
	}
	logging := func(more string) []string {
		return []string{adminPorts, "log: {access: json, access_file: " + access + more + "}"}
	}
	c := launch(t, logging("")[1])
	for _, row := range []struct{ more, logged, top string }{
		{", keys: plain", `client="plain-1"`, `client="plain-1"`},
		{", keys: off", "", ""},
		{", keys_secret_file: " + secret, "=", "="},
		{", keys: plain, level: warn", `client="plain-4"`, `client="plain-4"`},
		{", keys: plain, decisions: none", `client="plain-5"`, `client="plain-5"`},
	} {
		n := lines(access)
		c.reload(t, logging(row.more)...)
		c.log.Take()
		client := "plain-" + fmt.Sprint(n+1)
		c.send(t, client)
		want := strings.ReplaceAll(row.logged, "client=", "header:X-Client-Id=")
		eventually(t, "the line of the access log", func() bool { return lines(access) == n+1 })
		line := lastLine(t, access)
		if shown := strings.Contains(line, `"key":"`); shown != (want != "") || want != "" && !strings.Contains(line, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: the access log has %s", row.more, line)
		}
		if secret := strings.Contains(line, client); secret != strings.Contains(row.more, "plain") {
			t.Errorf("%s: the access log has %s", row.more, line)
		}
		keys, on := c.rules.Report().TopKeys("", 10)
		if on != (row.top != "") || on && !slices.ContainsFunc(keys.Keys, func(k report.TopKey) bool {
			return strings.Contains(k.Key, strings.ReplaceAll(row.top, "client=", "header:X-Client-Id="))
		}) {
			t.Errorf("%s: ctl top has %+v, %v", row.more, keys, on)
		}
		quiet := strings.Contains(row.more, "warn") || strings.Contains(row.more, "none")
		if !quiet {
			eventually(t, "the line of the decision", func() bool { return strings.Contains(c.log.String(), "msg=decision") })
		}
		if text := c.log.String(); quiet && strings.Contains(text, "msg=decision") || strings.Contains(text, client) != (!quiet && row.more == ", keys: plain") {
			t.Errorf("%s: the log has %s", row.more, text)
		}
	}
}

// TestReloadOfTheAccessLog: log.access and log.access_file take effect at a reload, also from off and to off.
func TestReloadOfTheAccessLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first.log"), filepath.Join(folder, "second.log")
	c := launch(t)
	c.send(t, "a")
	for _, row := range []struct{ settings, written, begins string }{
		{"log: {access: json, access_file: " + first + "}", first, "{"},
		{"log: {access: combined, access_file: " + first + "}", first, "127.0.0.1 - -"},
		{"log: {access: json, access_file: " + second + "}", second, "{"},
		{"log: {access: off}", "", ""},
		{"log: {access: json, access_file: " + second + "}", second, "{"},
	} {
		before := [...]int{lines(first), lines(second)}
		c.reload(t, adminPorts, row.settings)
		c.send(t, "a")
		if row.written == "" {
			continue // The next row counts what was written.
		}
		eventually(t, "the line of "+row.settings, func() bool { return lines(first)+lines(second) == before[0]+before[1]+1 })
		if line := lastLine(t, row.written); !strings.HasPrefix(line, row.begins) {
			t.Errorf("%s: the line is %s", row.settings, line)
		}
	}
	c.change(t, adminPorts, "log: {access: json, access_file: "+filepath.Join(folder, "none", "x.log")+"}")
	if err := c.Reload(); err == nil || !strings.Contains(err.Error(), "log.access_file") {
		t.Errorf("a file that cannot be opened: %v", err)
	}
	if n := c.proxyFront(t).AccessLinesDropped; n != 0 {
		t.Errorf("%d lines are dropped", n)
	}
}

// TestReloadOfTheAdminListeners: the addresses and the auth of the section admin take effect at a reload. The former address no
// longer listens.
func TestReloadOfTheAdminListeners(t *testing.T) {
	c := launch(t)
	start := c.Addresses()
	listens := func(at string) bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	// The wildcard address cannot have the port of an outgoing connection of another program.
	free, err := process.FreePort(0)
	if err != nil {
		t.Fatal(err)
	}
	// The reload comes over the listener that moves.
	c.change(t, fmt.Sprintf(`admin: {listen: "127.0.0.2:%d", health: "127.0.0.1:0"}`, free))
	if code, s := reloadOver(t, c.Instance); code != http.StatusOK || len(s.Waiting) > 0 {
		t.Errorf("status %d, %q wait", code, s.Waiting)
	}
	moved := c.Addresses()
	if moved.Admin == start.Admin || moved.Health != start.Health || listens(start.Admin) || !strings.HasPrefix(moved.Admin, "127.0.0.2:") {
		t.Errorf("the listeners are at %+v, and were at %+v", moved, start)
	}
	if code, _ := get(t, moved.Admin+"/api/v1/status"); code != http.StatusOK {
		t.Errorf("the new address answers %d", code)
	}
	// The same port on more addresses cannot be opened beside the former listener.
	_, port, _ := net.SplitHostPort(moved.Admin)
	c.reload(t, `admin: {listen: "0.0.0.0:`+port+`", health: off, auth: token}`, "server: {callers: [{name: a, tokens: ['sha256:"+strings.Repeat("0", 64)+"'], scopes: [read]}]}")
	if code, _ := get(t, "127.0.0.1:"+port+"/api/v1/status"); code != http.StatusUnauthorized {
		t.Errorf("without a token, the status is %d", code)
	}
	if c.Addresses().Health != "" || listens(start.Health) {
		t.Error("the health listener still listens")
	}
	// An address of another program refuses the reload.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	before := c.Addresses()
	c.change(t, `admin: {listen: "127.0.0.2:0", health: "`+taken.Addr().String()+`"}`)
	if err := c.Reload(); err == nil || !strings.Contains(err.Error(), "admin.health") || c.Addresses() != before {
		t.Errorf("an address in use: %v, and the listeners are at %+v, want %+v", err, c.Addresses(), before)
	}
	// It leaves the listener where it was, also if only its own listener is in the way at first.
	other, err := net.Listen("tcp", "127.0.0.3:"+port)
	if err == nil {
		other.Close()
		t.Fatal("the wildcard address does not have the port")
	}
	c.reload(t, adminPorts)
	if code, _ := get(t, c.Addresses().Admin+"/api/v1/status"); code != http.StatusOK {
		t.Errorf("after all, the status is %d", code)
	}
}

// TestAddressThatCannotBeTaken: a listener that has left its port and cannot have the new address goes back, and says so.
func TestAddressThatCannotBeTaken(t *testing.T) {
	c := launch(t)
	start := c.Addresses()
	_, port, _ := net.SplitHostPort(start.Admin)
	other, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c.change(t, `admin: {listen: "0.0.0.0:`+port+`", health: "127.0.0.1:0"}`)
	if code, s := reloadOver(t, c.Instance); code != http.StatusConflict || len(s.Failures) != 1 || s.Failures[0].Part != "admin.listen" {
		t.Errorf("status %d, failures %+v", code, s.Failures)
	}
	if c.Addresses().Admin != start.Admin {
		t.Errorf("the listener is at %s, want %s", c.Addresses().Admin, start.Admin)
	}
	c.change(t, adminPorts)
	if code, s := reloadOver(t, c.Instance); code != http.StatusOK {
		t.Errorf("status %d, failures %+v", code, s.Failures)
	}
}

// proxyFront gives the counters of the proxy's front.
func (c *changeable) proxyFront(t *testing.T) prom.Front {
	t.Helper()
	var described prom.Config
	c.components[len(c.components)-1].Metrics(&described)
	return described.Front()
}

func lastLine(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return all[len(all)-1]
}
