package etcd

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
)

// TestContents compares the revision of random contents with its slow twin, which looks at all objects each time.
func TestContents(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var c contents
	c.set(nil)
	twin, texts := map[source.Key]int64{}, map[source.Key]string{}
	for revision := int64(1); revision < 2000; revision++ {
		for range random.IntN(4) {
			key := source.Key{Kind: source.Plan, Name: fmt.Sprint(random.IntN(8))}
			if random.IntN(2) == 0 {
				twin[key], texts[key] = revision, strings.Repeat("x", random.IntN(9))
				c.put(&source.Object{Key: key, Revision: revision, Text: texts[key]})
				continue
			}
			_, found := twin[key]
			delete(twin, key)
			delete(texts, key)
			if c.remove(key) != found {
				t.Fatalf("%s is removed: want %v", key, found)
			}
		}
		if all := strings.Join(slices.Collect(maps.Values(texts)), ""); c.bytes != len(all) {
			t.Fatalf("at %d: %d bytes: want %d", revision, c.bytes, len(all))
		}
		newest := int64(0)
		for _, r := range twin {
			newest = max(newest, r)
		}
		if want := fmt.Sprintf("%d/%d", newest, len(twin)); c.text() != want {
			t.Fatalf("at %d: %s: want %s", revision, c.text(), want)
		}
	}
}

// TestRemoval: a transaction that removes all objects, the newest one first, looks at each object a few times only.
func TestRemoval(t *testing.T) {
	t.Parallel()
	const objects = 100_000 // Looking at all others each time takes a minute.
	all := make([]source.Object, objects)
	for i := range all {
		all[i] = source.Object{Key: source.Key{Kind: source.Customer, Name: fmt.Sprint(i)}, Revision: int64(i + 1)}
	}
	var c contents
	c.set(all)
	for i := objects - 1; i > 0; i-- {
		c.remove(all[i].Key)
		if c.newest != objects {
			t.Fatalf("the removal of %s looks at all objects", all[i].Key)
		}
	}
	if c.text() != "1/1" {
		t.Errorf("%s: want 1/1", c.text())
	}
}
