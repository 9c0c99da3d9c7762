package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/fifo"
)

// following starts an instance that watches its configuration file. write replaces the file
// with one rule of the given name.
func following(t *testing.T, logs *bytes.Buffer) (o Options, write func(rule, more string), path string) {
	t.Helper()
	o = options(t)
	folder := t.TempDir()
	path = filepath.Join(folder, "headgate.yaml")
	write = func(rule, more string) {
		t.Helper()
		text := fmt.Sprintf("version: 1\nmax_memory: 1MiB\n%s\nrules:\n  - {name: %s, key: [ip], limits: [\"2/1h\"]}\n"+
			"proxy: {listen: \"127.0.0.1:0\", upstream: \"%s\"}\nadmin: {listen: \"127.0.0.1:0\", health: off}\n", more, rule, o.Config.Proxy.Upstream)
		// The instance may read at any moment. A rename is atomic.
		if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
	}
	write("first", "")
	o.Path, o.Level = path, new(slog.LevelVar)
	o.Load = func() (*config.Config, error) { return config.Load(path) }
	if logs != nil {
		o.Log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: o.Level}))
	}
	return o, write, path
}

func start(t *testing.T, o Options) *Instance {
	t.Helper()
	var err error
	if o.Config, err = o.Load(); err != nil {
		t.Fatal(err)
	}
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Stop() })
	return i
}

// reloadOver requests a reload from the admin listener, as ctl reload does.
func reloadOver(t *testing.T, i *Instance, header ...string) (int, admin.ReloadStatus) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.Addresses().Admin+"/api/v1/reload", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n+1 < len(header); n += 2 {
		req.Header.Set(header[n], header[n+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s admin.ReloadStatus
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil && resp.StatusCode != http.StatusForbidden {
		t.Fatal(err)
	}
	return resp.StatusCode, s
}

// TestReloadByOrder checks a reload over the admin listener. The answer has the faults, and
// the status keeps them until a reload succeeds. The log's level follows the file.
func TestReloadByOrder(t *testing.T) {
	o, write, _ := following(t, nil)
	i := start(t, o)
	if code, _ := reloadOver(t, i, "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("a reload from a page of another site is answered with %d", code)
	}
	write("second", "log: {lvel: debug}")
	code, s := reloadOver(t, i)
	if code != http.StatusConflict || len(s.Failures) != 1 || s.Failures[0].Part != partConfiguration || len(s.Failures[0].Faults) != 1 ||
		s.Failures[0].Faults[0].Line != 3 || !strings.Contains(s.Failures[0].Faults[0].Fix, "level") {
		t.Fatalf("a reload of a faulty file is answered with %d %+v", code, s)
	}
	if kept := i.Status().Reload; kept.Failed != 1 || len(kept.Failures) != 1 || kept.Failures[0].At.IsZero() || i.rules.Report().Reloads.Good() {
		t.Errorf("the reload status is %+v", kept)
	}
	write("second", "log: {level: debug}")
	if code, s = reloadOver(t, i); code != http.StatusOK || len(s.Failures) != 0 || s.Succeeded != 1 {
		t.Errorf("a reload of a valid file is answered with %d %+v", code, s)
	}
	if rules := i.Status().Rules; rules[0].Name != "second" || o.Level.Level() != slog.LevelDebug || !i.rules.Report().Reloads.Good() {
		t.Errorf("the rules are %+v, the level is %v", rules, o.Level)
	}
}

// TestFaultyFileRotatesLogs checks that the access log is reopened even when the
// configuration is faulty.
func TestFaultyFileRotatesLogs(t *testing.T) {
	o, write, path := following(t, nil)
	access := filepath.Join(filepath.Dir(path), "access.log")
	write("first", "log: {access: json, access_file: access.log}")
	i := start(t, o)
	get(t, i.Addresses().Proxy)
	eventually(t, "the first line of the access log", func() bool { return lines(access) == 1 })
	if err := os.Rename(access, access+".1"); err != nil {
		t.Fatal(err)
	}
	write("first", "x: 1")
	if i.Reload() == nil {
		t.Fatal("a faulty file is accepted")
	}
	get(t, i.Addresses().Proxy)
	eventually(t, "a line in the new access log", func() bool { return lines(access) == 1 && lines(access+".1") == 1 })
}

// TestPipeIsAFailedReload checks that a pipe as the configuration file counts as a failed
// reload, and that a regular file that replaces the pipe is loaded.
func TestPipeIsAFailedReload(t *testing.T) {
	o, write, path := following(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	i := start(t, o)
	ended := i.follow(ctx)
	defer func() { cancel(); <-ended }()
	if err := errors.Join(os.Remove(path), fifo.Make(path)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the failed reload", func() bool {
		s := i.Status().Reload
		return s.Failed > 0 && len(s.Failures) == 1 && strings.Contains(s.Failures[0].Error, "not a regular file but a pipe")
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write("second", "")
	eventually(t, "the reload of the repaired file", func() bool {
		s := i.Status()
		return len(s.Reload.Failures) == 0 && s.Rules[0].Name == "second"
	})
}

func lines(path string) int {
	text, _ := os.ReadFile(path)
	return bytes.Count(text, []byte("\n"))
}

// eventually polls until the condition holds. Its timeout is long enough for a busy machine.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
