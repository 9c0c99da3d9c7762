package folder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is longer than any event that these tests wait for, on a busy machine.
const patience = 30 * time.Second

// limits is a file with a limit of one domain.
func limits(domain string, count int) string {
	return fmt.Sprintf("domain: %s\ndescriptors:\n- {key: k, rate_limit: {unit: hour, requests_per_unit: %d}}\n", domain, count)
}

// write writes files below root, with their folders.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		// A rename, because a look between the truncation and the writing would find an empty file.
		unfinished := filepath.Join(t.TempDir(), "unfinished")
		if err := os.WriteFile(unfinished, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(unfinished, path); err != nil {
			t.Fatal(err)
		}
	}
}

// link makes or replaces a link at once, as a deployment does.
func link(t *testing.T, target, at string) {
	t.Helper()
	if err := os.Symlink(target, at+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at+".new", at); err != nil {
		t.Fatal(err)
	}
}

// brief is like "a 1, b 2".
func brief(domains []guard.Domain) string {
	var all []string
	for _, d := range domains {
		all = append(all, fmt.Sprint(d.Name, " ", d.Descriptors[0].Leaf.Policies[0].Limit.Count))
	}
	return strings.Join(all, ", ")
}

// TestLayouts: which files are read, and the names that their faults have.
func TestLayouts(t *testing.T) {
	files := map[string]string{
		"sub/config/a.yaml":       limits("a", 1),
		"sub/config/deep/b.yaml":  limits("b", 2),
		"sub/config/.hidden.yaml": limits("hidden", 3),
		"sub/config.c.yaml":       limits("c", 4),
		"sub/configured.d.yaml":   limits("d", 5),
		"other/e.yaml":            limits("e", 6),
	}
	for _, c := range []struct {
		what  string
		c     Config
		files map[string]string
		want  string
	}{
		{"watched root", Config{Subdirectory: "sub", AppDirectory: "config", WatchRoot: true, IgnoreDotFiles: true}, files, "a 1, b 2, c 4"},
		{"application folder", Config{Subdirectory: "sub", AppDirectory: "config", IgnoreDotFiles: true}, files, "a 1, b 2"},
		{"dot files", Config{Subdirectory: "sub", AppDirectory: "config"}, files, "a 1, b 2, hidden 3"},
		{"all below the root", Config{IgnoreDotFiles: true}, files, "e 6, a 1, b 2, c 4, d 5"},
		{"no folder", Config{Subdirectory: "none"}, files, "none: no such file or directory: mount or create the folder with the limits"},
		{"no files of the application", Config{Subdirectory: "other", AppDirectory: "config", WatchRoot: true}, files, "has no files whose names begin with config.: add one"},
		{
			"faults of the watched root",
			Config{AppDirectory: "config", WatchRoot: true},
			map[string]string{"config/x.yaml": "domain: a\ndescriptors:\n- {value: x}\n"},
			"config.x.yaml:3:3: descriptors[0]",
		},
		{
			"faults of the application folder",
			Config{AppDirectory: "config"},
			map[string]string{"config/x.yaml": "domain: a\ndescriptors:\n- {value: x}\n"},
			"\nx.yaml:3:3: descriptors[0]",
		},
		{"a domain twice", Config{}, map[string]string{"a": limits("a", 1), "b": limits("a", 1)}, "domain"},
		{"a domain twice, merged", Config{Merge: true}, map[string]string{"a": limits("a", 1), "b": strings.Replace(limits("a", 2), "k,", "l,", 1)}, "a 1"},
	} {
		c.c.Root = t.TempDir()
		write(t, c.c.Root, c.files)
		s, err := New(c.c)
		if err != nil {
			t.Fatal(err)
		}
		domains, err := s.Read()
		got := brief(domains)
		if err != nil {
			got = "\n" + err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a Config without Root is accepted")
	}
}

// following is a source that is followed.
type following struct {
	t      *testing.T
	events chan string // "applied ..." or "fault ..."
}

func follow(t *testing.T, c Config, every time.Duration) *following {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.every = every
	f := &following{t: t, events: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Follow(ctx, func(domains []guard.Domain) error {
			f.events <- "applied " + brief(domains)
			return nil
		}, func(err error) { f.events <- "fault " + err.Error() })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Follow returns %v", err)
		}
	})
	return f
}

// expect waits for the next event and compares its begin.
func (f *following) expect(what, want string) {
	f.t.Helper()
	select {
	case got := <-f.events:
		if !strings.HasPrefix(got, want) {
			f.t.Fatalf("after %s: got %q, want %q", what, got, want)
		}
	case <-time.After(patience):
		f.t.Fatalf("after %s: nothing happens, want %q", what, want)
	}
}

// TestFollow tells the story of one folder, by the events of the system: no look happens without one.
func TestFollow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := follow(t, Config{Root: root, AppDirectory: "config"}, time.Hour)
	f.expect("the start without a folder", "fault folder: ")
	write(t, root, map[string]string{"config/a.yaml": limits("a", 1)})
	f.expect("the first file", "applied a 1")
	write(t, root, map[string]string{"config/a.yaml": limits("a", 2)})
	f.expect("a changed file", "applied a 2")
	write(t, root, map[string]string{"config/a.yaml": "domain: a\nlimit: 5\n"})
	f.expect("a faulty file", "fault a.yaml:2")
	write(t, root, map[string]string{"config/a.yaml": limits("a", 2), "config/deep/b.yaml": limits("b", 3)})
	f.expect("the repair, and a file in a new folder", "applied a 2, b 3")
	write(t, root, map[string]string{"config/deep/b.yaml": limits("b", 4)})
	f.expect("a change in the new folder", "applied a 2, b 4")
	if err := os.RemoveAll(filepath.Join(root, "config", "deep")); err != nil {
		t.Fatal(err)
	}
	f.expect("the end of the new folder", "applied a 2")
	if err := os.Remove(filepath.Join(root, "config", "a.yaml")); err != nil {
		t.Fatal(err)
	}
	f.expect("the end of the last file", "fault folder: ")
}

// TestSwappedRoot: the root is a link to one release after another, many times.
func TestSwappedRoot(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	current := filepath.Join(top, "current")
	release := func(n int) {
		t.Helper()
		name := fmt.Sprint("release", n)
		write(t, top, map[string]string{name + "/config/a.yaml": limits("a", n)})
		link(t, name, current)
	}
	release(1)
	f := follow(t, Config{Root: current, AppDirectory: "config", WatchRoot: true}, time.Hour)
	f.expect("the start", "applied a 1")
	for n := 2; n < 7; n++ {
		release(n)
		f.expect("a new release", fmt.Sprint("applied a ", n))
	}
	write(t, top, map[string]string{"release6/config/a.yaml": limits("a", 9)})
	f.expect("a change in the release", "applied a 9")
}

// TestKubernetes: a mounted ConfigMap has a link for each file to a hidden folder, which changes. With and
// without dot files, each file is read once.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprint(ignore), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			mount := filepath.Join(root, "config")
			version := func(n int) {
				t.Helper()
				write(t, mount, map[string]string{fmt.Sprintf("..v%d/a.yaml", n): limits("a", n)})
				link(t, fmt.Sprint("..v", n), filepath.Join(mount, "..data"))
				if err := os.RemoveAll(filepath.Join(mount, fmt.Sprint("..v", n-1))); err != nil {
					t.Fatal(err)
				}
			}
			version(1)
			link(t, "..data/a.yaml", filepath.Join(mount, "a.yaml"))
			f := follow(t, Config{Root: root, AppDirectory: "config", WatchRoot: true, IgnoreDotFiles: ignore}, time.Hour)
			f.expect("the start", "applied a 1")
			for n := 2; n < 5; n++ {
				version(n)
				f.expectAtLast("a new version", fmt.Sprint("applied a ", n))
			}
		})
	}
}

// expectAtLast waits until an event has a begin. The events before may show a state in between.
func (f *following) expectAtLast(what, want string) {
	f.t.Helper()
	for end := time.After(patience); ; {
		select {
		case got := <-f.events:
			if strings.HasPrefix(got, want) {
				return
			}
		case <-end:
			f.t.Fatalf("after %s: want %q", what, want)
		}
	}
}

// TestWithoutEvents: a change is noticed by the regular look.
func TestWithoutEvents(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"a.yaml": limits("a", 1)})
	s, err := New(Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{source: s, without: true}
	var applied []string
	look := func() {
		w.look(func(domains []guard.Domain) error {
			applied = append(applied, brief(domains))
			return nil
		}, func(err error) { t.Error(err) })
	}
	look()
	look()
	write(t, root, map[string]string{"a.yaml": limits("a", 2)})
	look()
	if got := strings.Join(applied, "; "); got != "a 1; a 2" {
		t.Errorf("applied %s, want each content once", got)
	}
}
