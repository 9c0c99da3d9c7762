package open

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/testkit/logs"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

// defaultLog makes slog.Default write to a buffer until the test ends.
func defaultLog(t *testing.T) *logs.Text {
	t.Helper()
	logged, before := new(logs.Text), slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return logged
}

// TestLibraryTellsOfItsStore: a program that only calls Guard gets log lines when the store is
// lost and when it answers again. Its decisions are counted.
func TestLibraryTellsOfItsStore(t *testing.T) {
	logged, server := defaultLog(t), testredis.Start(t)
	c := parsed(t, "version: 1\nstore: redis://"+server.Addr+"\nbreaker: {failures: 1, probe: 1ms, max_probe: 5ms}\n"+
		"fallback: allow\ndeny_cache: 0\nrules: [{name: a, key: [all], limits: [1000000/s]}]\n")
	g, err := Guard(c)
	if err != nil {
		t.Fatal(err)
	}
	store, _ := g.Store().(*Opened)
	t.Cleanup(func() { _ = store.Close() })
	until(t, func() bool { return decide(t, g, "/").Results[0].Decision.Reason == headgate.WithinLimit })
	server.Pause()
	until(t, func() bool { decide(t, g, "/"); return strings.Contains(logged.String(), "does not answer") })
	server.Resume()
	until(t, func() bool { decide(t, g, "/"); return strings.Contains(logged.String(), "answers again") })

	counted := report.Of(g)
	rules := counted.Rules()
	if len(rules) != 1 || len(rules[0].Fallbacks) == 0 || rules[0].Fallbacks[0].N == 0 {
		t.Errorf("what fallbacks decided is not counted: %+v", rules)
	}
	if nodes := store.State().Nodes; len(nodes) != 1 || nodes[0].LastFailure.Text == "" || nodes[0].LastFailure.At.IsZero() {
		t.Errorf("the last failure is not known: %+v", nodes)
	}
	if nodes := store.State().Nodes; len(nodes) != 1 || nodes[0].Opened == 0 {
		t.Errorf("that the server was given up is not counted: %+v", nodes)
	}
}

// TestLibraryTellsOfReloads: reloads, and failed ones, are logged and counted. The counters go
// on.
func TestLibraryTellsOfReloads(t *testing.T) {
	logged := defaultLog(t)
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	// The file is replaced by a rename. A file that is written in place is empty for a moment, and
	// a reload at that moment would be one more failure.
	write := func(limit string) {
		replace(t, path, "version: 1\nrules: [{name: a, key: [all], limits: ["+limit+"]}]\n")
	}
	write("1/1h")
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Guard(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Follow(ctx, path, c, g, nil) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	decide(t, g, "/")
	write("2/1h")
	until(t, func() bool { return strings.Contains(logged.String(), "the configuration was reloaded") })
	write("2/1x")
	until(t, func() bool { return strings.Contains(logged.String(), "was not reloaded") })
	decide(t, g, "/")

	counted := report.Of(g)
	if loaded, failed := counted.Reloads.Counts(); loaded != 1 || failed != 1 || counted.Reloads.Good() || counted.Reloads.Last().IsZero() {
		t.Errorf("%d reloads and %d that failed, want one of each", loaded, failed)
	}
	if n := counted.Rules()[0].Counts[0].N; n != 2 {
		t.Errorf("%d decisions are counted, want 2", n)
	}
}

// TestLibraryTellsOfUnusedSettings: each setting that only headgate proxy uses is named once,
// and no other setting is.
func TestLibraryTellsOfUnusedSettings(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"all", `shutdown_timeout: 5s
log: {level: warn, decisions: none, keys: plain, access: json}
proxy: {upstream: "http://127.0.0.1:1"}
fair_share: {client: ip, capacity: 5}
admin: {listen: "127.0.0.1:1"}
`, `"settings":["shutdown_timeout","log.level","log.access","proxy.upstream","admin"]`},
		{"none", "log: {decisions: none}\nfair_share: {client: ip, capacity: 5}\n", ""},
	} {
		path := filepath.Join(t.TempDir(), "headgate.yaml")
		if err := os.WriteFile(path, []byte("version: 1\nrules: []\n"+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		logged := defaultLog(t)
		if _, err := Guard(loaded); err != nil {
			t.Fatal(err)
		}
		if got := logged.String(); c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: logged %q, want %s", c.name, got, c.want)
		}
	}
}
