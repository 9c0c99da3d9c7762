package lease

import (
	"os"
	"path/filepath"
	"testing"
)

// TestInstance: two running processes never have one name, and a restarted process has its name again. A process in another
// network namespace, or after another boot of the machine, may listen on the same address at the same time.
func TestInstance(t *testing.T) {
	proc := func(boot, network string) string {
		dir := t.TempDir()
		for _, at := range []string{"sys/kernel/random", "self/ns"} {
			if err := os.MkdirAll(filepath.Join(dir, at), 0o750); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(dir+"/sys/kernel/random/boot_id", []byte(boot+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(network, dir+"/self/ns/net"); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first, address := proc("one", "net:[1]"), ":8081"
	name := instance(first, address)
	if name == "" || name != instance(proc("one", "net:[1]"), address) {
		t.Errorf("the name %q is empty or changes", name)
	}
	for what, other := range map[string]string{
		"another boot":      instance(proc("two", "net:[1]"), address),
		"another container": instance(proc("one", "net:[2]"), address),
		"another address":   instance(first, ":8082"),
	} {
		if other == "" || other == name {
			t.Errorf("%s has the name %q too", what, other)
		}
	}
	if a, b := instance(first, "127.0.0.1:0"), instance(t.TempDir(), address); a != "" || b != "" {
		t.Errorf("names %q and %q for a port of the kernel and without proc, want none", a, b)
	}
}
