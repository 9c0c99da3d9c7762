//go:build unix

package fleet

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/pace/etcd"
)

// late is the maximum delay of etcd's lease expiry after the TTL, in seconds. Etcd checks
// leases twice a second, and needs time for consensus.
const late = 2

// TestKilledProcess kills a process. Its part is used again after its lease, the propagation
// bound and one window.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1_000, settings{})
	f.start(4)
	f.settled(1_000, 4)
	f.all[2].kill()
	killed := now()
	from := f.settled(1_000, 3)
	if elapsed := from - 1 - killed; elapsed > int64((ttl+propagation)/time.Second)+1+late {
		t.Errorf("the part of the killed process is used again after %d s, want at most %d", elapsed, int64((ttl+propagation)/time.Second)+1+late)
	} else {
		t.Logf("the part of the killed process is used again after %d s", elapsed)
	}
	f.never(1_000, f.settings.First, from)
}

// TestEtcdAway kills or pauses etcd. With hold, the processes continue to give units. With
// stop, they stop in time. No second has more than the limit. The whole limit is used after
// etcd is reachable again.
func TestEtcdAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		onLoss etcd.OnLoss
		leave  func(*fleet)
		back   func(*fleet)
	}{
		{"hold, killed", etcd.Hold, func(f *fleet) { f.server.Kill() }, func(f *fleet) { f.server.Restart() }},
		{"stop, silent", etcd.Stop, func(f *fleet) { f.server.Pause() }, func(f *fleet) { f.server.Resume() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1_000, settings{OnLoss: c.onLoss})
			f.start(4)
			f.settled(1_000, 4)
			c.leave(f)
			gone := now()
			f.until(gone + 6)
			if c.onLoss == etcd.Hold {
				f.used(0.995, 1_000, gone, gone+6)
			} else {
				f.never(0, gone+int64(ttl/time.Second)+1, gone+6)
			}
			c.back(f)
			from := f.settled(1_000, 4)
			f.until(from + 1)
			f.never(1_000, f.settings.First, from+1)
		})
	}
}

// TestCutOff cuts a process off from etcd, and the others divide its part among them. With
// hold, the process exceeds the limit by at most this part. With stop, it gives nothing.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, onLoss := range map[string]etcd.OnLoss{"hold": etcd.Hold, "stop": etcd.Stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1_000, settings{OnLoss: onLoss})
			link := network.New(t, f.server.Addr)
			f.start(3)
			f.start(1, func(o *settings) { o.Endpoint = link.Addr })
			f.settled(1_000, 4)
			link.Cut()
			cut := now()
			f.until(cut + int64((ttl+propagation)/time.Second) + late + 3)
			after := now()
			if part := f.all[3].in(f, after-1); onLoss == etcd.Hold && part != 250 || onLoss == etcd.Stop && part != 0 {
				t.Errorf("the process that is cut off gives %d units, want 250 with hold and 0 with stop", part)
			}
			if others := f.given(after-1) - f.all[3].in(f, after-1); others != 1_000 {
				t.Errorf("the others give %d units, want 1,000", others)
			}
			link.Heal()
			from := f.settled(1_000, 4)
			f.until(from + 1)
			limit := int64(1_000)
			if onLoss == etcd.Hold {
				limit = 1_250
			}
			f.never(limit, f.settings.First, from)
			f.never(1_000, from, from+1)
		})
	}
}

// TestSlowWatch has a process with a slow network. With stop, the process gives nothing while
// its plan may be outdated. With hold, it uses its old part until it learns the new plan. Its
// lease may expire meanwhile. The others then get its part, and the limit is exceeded by that
// part until a plan contains the process again.
func TestSlowWatch(t *testing.T) {
	t.Parallel()
	for name, onLoss := range map[string]etcd.OnLoss{"hold": etcd.Hold, "stop": etcd.Stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1_000, settings{OnLoss: onLoss})
			link := network.New(t, f.server.Addr)
			f.start(3)
			f.start(1, func(o *settings) { o.Endpoint = link.Addr })
			before := f.settled(1_000, 4)
			link.Latency(0, 2*propagation, 0)
			f.until(now() + 1)
			f.set(400)
			changed := now()
			f.until(changed + 6)
			f.never(1_000, before, changed+2)
			if onLoss == etcd.Stop {
				f.never(400, changed+2, changed+6)
			} else { // The process uses its old part until it learns the change. Its lease may expire.
				f.never(300+250, changed+2, changed+4)
				f.never(400+100, changed+4, changed+6)
			}
			link.Heal()
			if onLoss == etcd.Hold { // An expired lease has effect until a plan contains the process again.
				f.until(now() + int64((ttl+2*propagation)/time.Second) + late)
			}
			from := f.settled(400, 4)
			f.until(from + 1)
			f.never(400, from, from+1)
		})
	}
}
