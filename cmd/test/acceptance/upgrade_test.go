package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testmemcached "github.com/headgate/headgate/internal/testkit/memcached"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// versionFiles contain the versions of the stored forms.
var versionFiles = []string{"internal/store/script/version.go", "store/memcached/version.go"}

// nextRelease builds the binary of a release with another stored form: the same code, with
// "hg4:" for "hg3:" in versionFiles.
func nextRelease(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for i, name := range versionFiles {
		path := filepath.Join(root, filepath.FromSlash(name))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		next := strings.ReplaceAll(string(text), `"hg3:"`, `"hg4:"`)
		if next == string(text) {
			t.Fatalf("%s does not have the prefix hg3:", name)
		}
		replaced[path] = filepath.Join(dir, fmt.Sprintf("version%d.go", i))
		if err := os.WriteFile(replaced[path], []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(dir, "headgate-next")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", built, "github.com/headgate/headgate/cmd/headgate")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the next release does not build: %v\n%s", err, out)
	}
	return built
}

// join starts one more process of the fleet, with the binary of a release.
func (f *fleet) join(t *testing.T, release, store string, s sharing, upstream string) *instance {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	text := fmt.Sprintf(sharedConfiguration, store, s.prefetch, log, s.algorithm, s.limit, s.cost)
	path := file(t, fmt.Sprintf(text, upstream)+adminAnywhere)
	i := serve(t, path, exec.Command(release, "proxy", "--config", path))
	f.logs, f.instances = append(f.logs, log), append(f.instances, i)
	return i
}

// TestRollingUpgradeOfStoredState: processes of two releases with different stored forms serve
// requests in turns on one store, and then only the new one. Every window admits at least its
// limit and at most twice the limit. Two processes of one release admit exactly the limit.
func TestRollingUpgradeOfStoredState(t *testing.T) {
	t.Parallel()
	next := nextRelease(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(upstream.Close)
	onRedis := func(t *testing.T) string { t.Helper(); return "redis://" + testserver.Start(t).Addr }
	onMemcached := func(t *testing.T) string { t.Helper(); return "memcached://" + testmemcached.Start(t).Addr }
	for _, c := range []struct {
		name                string
		start               func(*testing.T) string
		prefetch, algorithm string
	}{
		{"Redis fixed_window", onRedis, "off", "fixed_window"},
		{"Redis fixed_window prefetch", onRedis, "auto", "fixed_window"},
		{"Redis sliding_window", onRedis, "off", "sliding_window"},
		{"Memcached fixed_window", onMemcached, "off", "fixed_window"},
	} {
		s := sharing{algorithm: c.algorithm, prefetch: c.prefetch, limit: "20/24h", count: 20, cost: 1, per: 24 * time.Hour}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s.upgrade(t, c.start(t), [2]string{binary, binary}, upstream.URL)
			s.upgrade(t, c.start(t), [2]string{binary, next}, upstream.URL)
		})
	}
}

// upgrade replaces the first release with the second. Each process gets twice the limit in
// requests, and the second then the limit once more.
func (s sharing) upgrade(t *testing.T, store string, releases [2]string, upstream string) {
	t.Helper()
	f := &fleet{}
	before, after := f.join(t, releases[0], store, s, upstream), f.join(t, releases[1], store, s, upstream)
	for range 2 * s.count {
		get(t, "http://"+before.Proxy+"/")
		get(t, "http://"+after.Proxy+"/")
	}
	before.stop()
	for range s.count {
		get(t, "http://"+after.Proxy+"/")
	}
	s.checkUpgrade(t, f.admitted(t), releases[0] != releases[1])
}

// checkUpgrade checks the admitted units: the limit, or up to twice the limit if the stored form
// has changed.
func (s sharing) checkUpgrade(t *testing.T, at []int64, upgraded bool) {
	t.Helper()
	most, all := s.most(at), int64(len(at))
	t.Logf("upgraded %v: %d admitted, %d in one window of %s", upgraded, all, most, s.limit)
	bound := s.count
	if upgraded {
		bound = 2 * s.count
	}
	if most > bound || all < s.count {
		t.Errorf("upgraded %v: %d admitted and %d in one window, want at least %d, and at most %d in a window",
			upgraded, all, most, s.count, bound)
	}
	if upgraded && all <= s.count {
		t.Errorf("%d admitted: the releases do not count apart, and the test shows nothing", all)
	}
}
