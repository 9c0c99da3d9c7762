//go:build soak

package acceptance

import (
	"syscall"
	"testing"
	"time"

	client "github.com/headgate/headgate/client/lease"
)

// watchedLeases are leases whose sum never exceeds the capacity. After an outage, the safe amounts come on top.
type watchedLeases struct {
	g    *leaseGroup
	all  []*client.Lease
	safe bool
}

// sum gives what all leases allow now, and checks it.
func (w *watchedLeases) sum() (sum int64) {
	w.g.t.Helper()
	for _, l := range w.all {
		sum += l.Amount()
	}
	most := int64(leaseCapacity)
	if w.safe {
		most += leaseSafe * int64(len(w.all))
	}
	if sum > most {
		w.g.t.Fatalf("the leases have %d of %d", sum, most)
	}
	return sum
}

// watch checks the sum until done.
func (w *watchedLeases) watch(what string, done func() bool) {
	w.g.t.Helper()
	eventually(w.g.t, what, func() bool { w.sum(); return done() })
}

// whole waits until the capacity is handed out.
func (w *watchedLeases) whole(what string) {
	w.g.t.Helper()
	w.watch(what, func() bool { return w.sum() > 495_000 })
}

func newWatchedLeases(t *testing.T) *watchedLeases {
	t.Helper()
	w := &watchedLeases{g: newLeaseGroup(t)}
	for _, wants := range []int64{100_000, 300_000, 900_000} {
		w.all = append(w.all, leaseOf(t, w.g.client(), "db/orders", wants))
	}
	w.whole("the first division")
	return w
}

// TestSoakKilledMaster kills the master four times, and starts it again. The other server is the master within ttl + 2 s, no lease is
// lost, and the sum is never above the capacity.
func TestSoakKilledMaster(t *testing.T) {
	w := newWatchedLeases(t)
	g := w.g
	for range 4 {
		master, _ := g.master("")
		g.kill(master)
		killed := time.Now()
		w.watch("the next master", func() bool { return len(g.masters("")) == 1 })
		elapsed := time.Since(killed)
		t.Logf("the next master after %v", elapsed)
		if elapsed > 3*time.Second {
			t.Errorf("the next master after %v, want at most ttl + 2s", elapsed)
		}
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
			for _, l := range w.all {
				if s := l.State(); s.Lost || s.Amount == 0 {
					t.Fatalf("a lease is lost: %+v", s)
				}
			}
			w.sum()
			<-time.After(10 * time.Millisecond)
		}
		w.whole("the division of the next master")
		g.start(master)
	}
}

// TestSoakPausedMaster pauses the master for longer than its time. The other server takes over. The continued one gives no lease,
// and is the follower.
func TestSoakPausedMaster(t *testing.T) {
	w := newWatchedLeases(t)
	g := w.g
	for range 3 {
		master, _ := g.master("")
		g.signal(master, syscall.SIGSTOP)
		w.watch("the next master", func() bool { return len(g.masters(master)) == 1 })
		g.signal(master, syscall.SIGCONT)
		w.watch("one master", func() bool { all := g.masters(""); return len(all) == 1 && all[0] != master })
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			w.sum()
			if all := g.masters(""); len(all) != 1 || all[0] == master {
				t.Fatalf("the masters are %v after %s was paused", all, master)
			}
		}
		w.whole("the division of the next master")
	}
}

// TestSoakLeasesWithoutEtcd kills etcd: the master stops before its key could expire, and leases end after their length. on_loss of
// the programs decides. When etcd is back, the next master counts all of the capacity as given. Until the leases of before have
// ended, the programs keep their safe amounts.
func TestSoakLeasesWithoutEtcd(t *testing.T) {
	w := newWatchedLeases(t)
	g := w.g
	killed := time.Now()
	g.etcd.Kill()
	w.watch("the end of the master", func() bool { return len(g.masters("")) == 0 })
	if elapsed := time.Since(killed); elapsed > time.Second+100*time.Millisecond {
		t.Errorf("the master stopped after %v, want at most its ttl of 1s", elapsed)
	}
	w.safe = true
	onSafe := func(lost bool) bool {
		for _, l := range w.all {
			if s := l.State(); s.Lost != lost || s.Amount != leaseSafe {
				return false
			}
		}
		return true
	}
	w.watch("the end of the leases", func() bool { return onSafe(true) })
	g.etcd.Restart()
	back, kept := time.Now(), time.Time{}
	w.watch("the division when etcd is back", func() bool {
		for _, l := range w.all {
			if s := l.State(); s.Amount < leaseSafe {
				t.Fatalf("%+v %v after etcd is back, want at least the safe amount", s, time.Since(back))
			}
		}
		if onSafe(false) && kept.IsZero() {
			kept = time.Now()
		}
		return w.sum() > 495_000
	})
	t.Logf("all leases are valid after %v, and the capacity is handed out after %v", kept.Sub(back), time.Since(back))
	if kept.IsZero() {
		t.Error("no safe amount stayed in force beside a lease: the test shows nothing")
	}
}
