package open

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/logs"
	testmemcached "github.com/headgate/headgate/internal/testkit/memcached"
)

// opened opens the store of a configuration, and makes a guard on it.
func opened(t *testing.T, c *config.Config, o Options) (*Opened, *guard.Guard) {
	t.Helper()
	store, err := Store(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	described, err := GuardConfig(c, store)
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(described)
	if err != nil {
		t.Fatal(err)
	}
	return store, g
}

// decide decides a request for a path.
func decide(t *testing.T, g *guard.Guard, path string) *guard.Answer {
	t.Helper()
	a := &guard.Answer{}
	if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: path}, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRulesFallBack: a program starts without any server. Each rule answers by its fallback:
// local, deny or allow.
func TestRulesFallBack(t *testing.T) {
	for _, store := range unreachableStores() {
		t.Run(store, func(t *testing.T) {
			c := parsed(t, "version: 1\nstore: "+store+"\nstore_timeout: 50ms\nlocal_share: 50%\nbreaker: {failures: 1}\nrules:\n"+
				"- {name: local, match: {path: /local}, key: [all], algorithm: fixed_window, limits: [4/300d], fallback: local}\n"+
				"- {name: allow, match: {path: /allow}, key: [all], limits: [1/d], fallback: allow}\n"+
				"- {name: deny, match: {path: /deny}, key: [all], limits: [1/d]}\n")
			s, g := opened(t, c, Options{})
			for _, row := range []struct {
				path string
				want headgate.Verdict
			}{
				{"/local", headgate.Allow},
				{"/local", headgate.Allow},
				{"/local", headgate.Deny},
				{"/allow", headgate.Allow},
				{"/allow", headgate.Allow},
				{"/deny", headgate.Deny},
			} {
				a := decide(t, g, row.path)
				if a.Verdict != row.want || a.Results[0].Decision.Reason != headgate.StoreUnavailable {
					t.Errorf("%s: got %s for %s, want %s", row.path, a.Verdict, a.Results[0].Decision.Reason, row.want)
				}
			}
			if s.Memory() == nil || s.Memory().Stats().Used == 0 {
				t.Error("nothing was counted in memory")
			}
		})
	}
}

// TestOneLimitOnMemcached: two instances with prefetch and fallbacks share one limit.
func TestOneLimitOnMemcached(t *testing.T) {
	first, second := testmemcached.Start(t), testmemcached.Start(t)
	text := fmt.Sprintf("version: 1\nstore: memcached://%s,%s\nstore_timeout: 10s\nprefetch: {batch: 10, hold: 10s}\nrules:\n"+
		"- {name: a, match: {path: /a}, key: [all], algorithm: fixed_window, limits: [50/300d]}\n"+
		"- {name: b, match: {path: /b}, key: [all], limits: [50/300d], prefetch: off}\n", first.Addr, second.Addr)
	one, oneGuard := opened(t, parsed(t, text), Options{})
	other, otherGuard := opened(t, parsed(t, text), Options{})
	for _, path := range []string{"/a", "/b"} {
		allowed := 0
		for i := range 100 {
			if decide(t, []*guard.Guard{oneGuard, otherGuard}[i/10%2], path).Verdict == headgate.Allow {
				allowed++
			}
		}
		if allowed != 50 {
			t.Errorf("%s: %d are allowed, want 50", path, allowed)
		}
	}
	for _, s := range []*Opened{one, other} {
		if got := s.Prefetch().Stats(); got.Spent == 0 || got.Denied == 0 {
			t.Errorf("nothing was spent, or refused, without asking: %+v", got)
		}
		if len(s.Memcached().Stats()) != 2 || s.Redis() != nil || s.Memory() != nil {
			t.Error("it is another store")
		}
	}
}

// TestChangesAreLogged: one line when a server stops answering, and one when it answers again.
func TestChangesAreLogged(t *testing.T) {
	var logged logs.Text
	server := testmemcached.Start(t)
	c := parsed(t, "version: 1\nstore: memcached://"+server.Addr+"\nbreaker: {failures: 1, probe: 1ms, max_probe: 5ms}\ndeny_cache: 0\n"+
		"rules: [{name: a, key: [all], limits: [1000000/s]}]\n")
	_, g := opened(t, c, Options{Log: logged.Logger()})
	until(t, func() bool { return decide(t, g, "/").Results[0].Decision.Reason == headgate.WithinLimit })
	server.Pause()
	until(t, func() bool { decide(t, g, "/"); return strings.Contains(logged.String(), "does not answer") })
	server.Resume()
	until(t, func() bool { decide(t, g, "/"); return strings.Contains(logged.String(), "answers again") })
}

// until polls until ok is true.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	look, end := time.NewTicker(time.Millisecond), time.After(deadline)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("it has not come within %s", deadline)
		}
	}
}

// TestReloadsOfSharedStores: a reload may change timeouts and fallbacks of a shared store, but
// not the store.
func TestReloadsOfSharedStores(t *testing.T) {
	const rule = "rules: [{name: a, key: [all], algorithm: fixed_window, limits: [4/300d]}]\n"
	const base = "store: memcached://127.0.0.1:1,127.0.0.1:2\nbreaker: {failures: 1}\n"
	for _, row := range []struct {
		name, next string
		refused    bool
	}{
		{"the same", base, false},
		{"servers in another order", "store: memcached://127.0.0.1:2,127.0.0.1:1\n", false},
		{"prefetch and timeout", base + "prefetch: auto\nstore_timeout: 30ms\n", false},
		{"deny cache", base + "deny_cache: 5s\n", false},
		{"another fallback", base + "fallback: local\nlocal_share: 50%\n", false},
		{"another server", "store: memcached://127.0.0.1:1,127.0.0.1:3\n", true},
		{"another kind", "store: redis://127.0.0.1:1\n", true},
		{"memory", "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, g := opened(t, parsed(t, "version: 1\n"+base+rule), Options{})
			decide(t, g, "/")
			err := reload(parsed(t, "version: 1\n"+row.next+rule), g)
			if got := errors.Is(err, config.ErrStoreChanged); got != row.refused || !got && err != nil {
				t.Fatalf("got %v", err)
			}
			if row.refused {
				if strings.Count(err.Error(), "memcached://127.0.0.1:1") < 1 {
					t.Errorf("it does not tell the store: %v", err)
				}
				return
			}
			if local := strings.Contains(row.next, "local"); local != (s.Memory() != nil) || local != (decide(t, g, "/").Verdict == headgate.Allow) {
				t.Error("the fallback is another one")
			}
		})
	}
	_, g := opened(t, parsed(t, "version: 1\n"+rule), Options{})
	if err := reload(parsed(t, "version: 1\n"+base+rule), g); !errors.Is(err, config.ErrStoreChanged) {
		t.Errorf("memory becomes a shared store: %v", err)
	}
	if err := reload(parsed(t, "version: 1\n"+rule), g); err != nil {
		t.Error(err)
	}
}

// TestSecretFiles: the contents allowed in a password file. An error names the file, and never
// shows its contents.
func TestSecretFiles(t *testing.T) {
	for text, want := range map[string]string{
		"secret": "", "secret\n": "", "secret\r\n": "", "": "is empty: write the password into the file", "\n": "is empty: write the password into the file",
		"secret\nx\n": "has several lines: write only the password into the file", "\nsecret": "has several lines: write only the password into the file",
		"secret" + strings.Repeat("x", maxPasswordBytes): "has more than 4096 bytes: write only the password into the file",
	} {
		path := filepath.Join(t.TempDir(), "redis")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		secret, err := readPassword("store_password_file", path)
		switch {
		case want == "":
			if err != nil || secret != "secret" {
				t.Errorf("%q: got %q, %v", text, secret, err)
			}
		case err == nil || err.Error() != "config: store_password_file: "+path+" "+want || strings.Contains(err.Error(), "secret"):
			t.Errorf("%.20q: got %v", text, err)
		}
	}
	_, err := readPassword("store_password_file", filepath.Join(t.TempDir(), "none"))
	if bad, found := errortype.As[*config.FileError](err); !found || bad.Path != "store_password_file" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// unreachableStores are addresses without a listener.
func unreachableStores() []string {
	return []string{
		"memcached://127.0.0.1:1", "redis://127.0.0.1:1", "rediss://:p@127.0.0.1:1/2", "redis+cluster://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/m",
	}
}
