//go:build soak

package acceptance

import (
	"syscall"
	"testing"
	"time"
)

// TestSoakLeasesOfKilledServers kills the root and the leaf with SIGKILL, in turn, and starts them again at once. The holders never
// have more than the capacity, and have all of it again after the longest lease.
func TestSoakLeasesOfKilledServers(t *testing.T) {
	tree := newLeaseTree(t)
	root, leaf := launchServer(t, tree.root), launchServer(t, tree.leaf)
	all := map[*leaseHolder]int64{holderAt(t, tree.rootAt, "direct", "web"): 100_000, holderAt(t, tree.leafAt, "below", ""): 900_000}
	whole := func(what string) {
		t.Helper()
		eventually(t, what, func() bool { return refreshAll(t, all) > 495_000 })
	}
	whole("the first division")
	kill := func(i *instance) {
		t.Helper()
		if err := i.command.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-i.ended
	}
	for range 4 {
		kill(leaf)
		leaf = launchServer(t, tree.leaf)
		for end := time.Now().Add(time.Second); time.Now().Before(end); {
			refreshAll(t, all)
		}
		whole("the division after the leaf was killed")
		kill(root)
		root = launchServer(t, tree.root)
		for end := time.Now().Add(time.Second); time.Now().Before(end); {
			refreshAll(t, all)
		}
		whole("the division after the root was killed")
	}
}
