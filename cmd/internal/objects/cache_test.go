package objects

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

func someCache(n int) *Cached {
	c := &Cached{Place: "http://a/x", Revision: "r1", Written: time.Unix(1e9, 0).UTC()}
	for i := range n {
		c.Objects = append(c.Objects, source.Object{Key: key(fmt.Sprint("customers/c", i)), Text: "{plan: free, note: \"<\n>\"}", Revision: int64(i)})
	}
	return c
}

// contentOf gives what WriteCache needs to write a cache.
func contentOf(c *Cached) *Content {
	return &Content{Place: c.Place, Revision: c.Revision, Written: c.Written, Len: len(c.Objects), All: slices.Values(c.Objects)}
}

// TestCache: a cache is read as it was written, and only its owner may read it.
func TestCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	if _, err := ReadCache(path, "http://a/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: got %v", err)
	}
	for _, n := range []int{0, 3} {
		if err := WriteCache(path, contentOf(someCache(n))); err != nil {
			t.Fatal(err)
		}
		got, err := ReadCache(path, "http://a/x")
		want := someCache(n)
		if err != nil || len(got.Objects) != n || n > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) != 0 {
		t.Errorf("files are left: %q", left)
	}
	if err := WriteCache(filepath.Join(path, "no"), contentOf(someCache(1))); err == nil {
		t.Error("a cache below a file was written")
	}
}

// TestSpoiledCaches: each changed byte, each cut, and each foreign file is refused with a reason.
func TestSpoiledCaches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	if err := WriteCache(path, contentOf(someCache(3))); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, text []byte, place, want string) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadCache(path, place)
		bad, found := errors.AsType[*CacheError](err)
		if !found || !strings.Contains(bad.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", what, err, want)
		}
	}
	for cut := range whole {
		refused(fmt.Sprintf("%d bytes", cut), whole[:cut], "http://a/x", "written anew when the source answers: make sure that the source answers")
	}
	body := bytes.IndexByte(whole, '\n') + 1
	for at := body; at < len(whole); at++ {
		other := append([]byte{}, whole...)
		other[at] ^= 1
		refused(fmt.Sprintf("byte %d changed", at), other, "http://a/x", "does not have its checksum")
	}
	refused("more text", append(append([]byte{}, whole...), 'x'), "http://a/x", "does not have its checksum")
	refused("another source", whole, "http://b/x", `belongs to the source "http://a/x", and this is "http://b/x": nothing of it is in force`)
	refused("an empty file", nil, "http://a/x", "is not a cache of this version")
	refused("another version", []byte(strings.Replace(string(whole), "cache-1", "cache-2", 1)), "http://a/x", "is not a cache of this version")
	refused("another file", []byte("version: 1\nrules: []\n"), "http://a/x", "is not a cache of this version")
	if _, err := ReadCache(t.TempDir(), "http://a/x"); err == nil || !strings.HasSuffix(err.Error(), "name another file, and start again") {
		t.Errorf("a folder: got %v", err)
	}
	large, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(large.Truncate(maxCache+1), large.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCache(path, "http://a/x"); err == nil || !strings.Contains(err.Error(), "is larger than 256 MiB") {
		t.Errorf("a large file: got %v", err)
	}
}

// TestAdvice: a cache that would be too large is not written, and the advice is about its size.
func TestAdvice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := &Cached{Place: "http://a/x", Objects: make([]source.Object, 20)}
	for n := range c.Objects {
		c.Objects[n] = source.Object{Key: key(fmt.Sprint("customers/c", n)), Text: strings.Repeat("x", source.MaxText)}
	}
	const want = "/cache: would be larger than 1 MiB: write shorter objects, or fewer ones"
	if err := writeCache(path, contentOf(c), 1<<20); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if err := WriteCache(filepath.Join(path, "no"), contentOf(c)); err == nil || !strings.Contains(err.Error(), "let the user of the process write") {
		t.Errorf("got %v", err)
	}
}
