package open

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/rule"
)

// deadline is far longer than the system needs to report a change.
const deadline = 30 * time.Second

// followed has the arguments of one call of told.
type followed struct {
	config *config.Config
	err    error
}

// follow follows a configuration from now on. It gives the guard and the calls of told.
func follow(t *testing.T, path string) (*guard.Guard, <-chan followed) {
	t.Helper()
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Guard(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leak.Watch(t))
	notified, ended := make(chan followed, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- Follow(ctx, path, c, g, func(c *config.Config, err error) { notified <- followed{c, err} })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return g, notified
}

func next(t *testing.T, notified <-chan followed) followed {
	t.Helper()
	select {
	case one := <-notified:
		return one
	case <-time.After(deadline):
		t.Fatal("nothing is told")
		return followed{}
	}
}

// passing gives how many of 20 simultaneous requests a guard allows.
func passing(t *testing.T, g *guard.Guard, ip string) int {
	t.Helper()
	passed := 0
	for range 20 {
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/", IP: netip.MustParseAddr(ip)}, &a); err != nil {
			t.Fatal(err)
		}
		if a.Verdict == headgate.Allow {
			passed++
		}
	}
	return passed
}

// replace writes a file atomically, by a rename.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func limited(limit string) string {
	return "version: 1\nrules: [{name: a, key: [ip], algorithm: fixed_window, limits: [" + limit + "]}]\n"
}

// TestFollow: a valid file takes effect and keeps the counts. An invalid file changes nothing,
// and its faults are reported.
func TestFollow(t *testing.T) {
	path := filepath.Join(folder(t, map[string]string{"headgate.yaml": limited("5/365d")}), "headgate.yaml")
	g, notified := follow(t, path)
	if n := passing(t, g, "192.0.2.1"); n != 5 {
		t.Fatalf("%d pass at first", n)
	}
	replace(t, path, limited("8/365d"))
	if one := next(t, notified); one.err != nil || one.config.Rules[0].Policies[0].Limit.Count != 8 {
		t.Fatalf("told %+v", one)
	}
	if n := passing(t, g, "192.0.2.1"); n != 3 {
		t.Errorf("of 8, 5 of them used, %d pass", n)
	}
	replace(t, path, limited("9/365x"))
	var faults config.Faults
	if one := next(t, notified); one.config != nil || !errors.As(one.err, &faults) || faults[0].Line != 2 {
		t.Errorf("told %+v", one)
	}
	if n := passing(t, g, "192.0.2.2"); n != 8 {
		t.Errorf("after a file at fault %d pass", n)
	}
	replace(t, path, limited("9/365d"))
	if one := next(t, notified); one.err != nil {
		t.Errorf("told %v", one.err)
	}
	if n := passing(t, g, "192.0.2.3"); n != 9 {
		t.Errorf("%d pass at the end", n)
	}
}

// TestFollowSinceLoad: Follow sees a change between Load and Follow.
func TestFollowSinceLoad(t *testing.T) {
	path := filepath.Join(folder(t, map[string]string{"headgate.yaml": limited("5/365d")}), "headgate.yaml")
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Guard(c)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, limited("6/365d"))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	err = Follow(ctx, path, c, g, func(_ *config.Config, err error) {
		cancel()
		if err != nil {
			t.Error(err)
		}
	})
	if n := passing(t, g, "192.0.2.1"); err != nil || n != 6 {
		t.Errorf("%d pass, %v", n, err)
	}
}

// TestFollowFiles: Follow also watches the files that the identity names. Such a file may
// appear later than the configuration that names it.
func TestFollowFiles(t *testing.T) {
	dir := folder(t, map[string]string{"headgate.yaml": limited("5/365d")})
	path := filepath.Join(dir, "headgate.yaml")
	g, notified := follow(t, path)
	replace(t, path, "identity: {jwt: {keys: keys/jwks.pem}}\n"+strings.Replace(limited("5/365d"), "[ip]", "['jwt:sub']", 1))
	if one := next(t, notified); one.err == nil || !strings.Contains(one.err.Error(), "jwks.pem") {
		t.Fatalf("a file that is not there: told %+v", one)
	}
	if g.Needs()&rule.NeedClaims != 0 {
		t.Error("it has taken effect")
	}
	if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, "keys", "jwks.pem"), keyFile(t))
	one := next(t, notified)
	if want := []string{filepath.Join(dir, "keys", "jwks.pem")}; one.err != nil || !slices.Equal(one.config.Files(), want) {
		t.Fatalf("a file that has come: told %+v", one)
	}
	if g.Needs()&rule.NeedClaims == 0 {
		t.Error("it has not taken effect")
	}
	before := g.Identity().Tokens
	replace(t, filepath.Join(dir, "keys", "jwks.pem"), keyFile(t))
	if one := next(t, notified); one.err != nil || g.Identity().Tokens == before {
		t.Errorf("other keys: told %+v", one)
	}
	replace(t, path, limited("5/365d"))
	if one := next(t, notified); one.err != nil || len(one.config.Files()) != 0 {
		t.Errorf("without keys: told %+v", one)
	}
}
