//go:build unix

package fleet

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/pace/etcd"
)

// late is how much later than its TTL etcd lets a lease expire, at most: it looks twice
// a second, and tells when it has agreed with itself.
const late = 2

// TestKilledProcess: the part of a process that is killed is in use again after its
// lease, the propagation bound and one window.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1_000, orders{})
	f.start(4)
	f.settled(1_000, 4)
	f.all[2].kill()
	killed := now()
	from := f.settled(1_000, 3)
	if took := from - 1 - killed; took > int64((ttl+propagation)/time.Second)+1+late {
		t.Errorf("its part is back after %d s", took)
	} else {
		t.Logf("its part is back after %d s", took)
	}
	f.never(1_000, f.orders.First, from)
}

// TestEtcdAway: while etcd is away, killed or silent, the calls go on as they were with
// hold, and end in time with stop. No second has more than the limit, and when etcd is back
// all is as before.
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
			f := newFleet(t, 1_000, orders{OnLoss: c.onLoss})
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
			f.never(1_000, f.orders.First, from+1)
		})
	}
}

// TestCutOff: a process that is cut off from etcd while the others divide its part
// among them adds no more than that part with hold, and nothing with stop.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, onLoss := range map[string]etcd.OnLoss{"hold": etcd.Hold, "stop": etcd.Stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1_000, orders{OnLoss: onLoss})
			link := network.New(t, f.server.Addr)
			f.start(3)
			f.start(1, func(o *orders) { o.Endpoint = link.Addr })
			f.settled(1_000, 4)
			link.Cut()
			cut := now()
			f.until(cut + int64((ttl+propagation)/time.Second) + late + 3)
			after := now()
			if part := f.all[3].in(f, after-1); onLoss == etcd.Hold && part != 250 || onLoss == etcd.Stop && part != 0 {
				t.Errorf("it takes %d of its 250", part)
			}
			if others := f.given(after-1) - f.all[3].in(f, after-1); others != 1_000 {
				t.Errorf("the others take %d of 1,000", others)
			}
			link.Heal()
			from := f.settled(1_000, 4)
			f.until(from + 1)
			limit := int64(1_000)
			if onLoss == etcd.Hold {
				limit = 1_250
			}
			f.never(limit, f.orders.First, from)
			f.never(1_000, from, from+1)
		})
	}
}

// TestSlowWatch: one process has a slow network. With stop, it uses nothing while it may not know the
// plan. With hold, it uses its old part until it learns the new plan. Its lease may be lost meanwhile:
// the others then get its part, and the limit is exceeded by that part until a plan has the process
// again.
func TestSlowWatch(t *testing.T) {
	t.Parallel()
	for name, onLoss := range map[string]etcd.OnLoss{"hold": etcd.Hold, "stop": etcd.Stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1_000, orders{OnLoss: onLoss})
			link := network.New(t, f.server.Addr)
			f.start(3)
			f.start(1, func(o *orders) { o.Endpoint = link.Addr })
			before := f.settled(1_000, 4)
			link.Latency(0, 2*propagation, 0)
			f.until(now() + 1)
			f.set(400)
			changed := now()
			f.until(changed + 6)
			f.never(1_000, before, changed+2)
			if onLoss == etcd.Stop {
				f.never(400, changed+2, changed+6)
			} else { // Its old part, until it hears; its lease may be lost, and then its part is others' too.
				f.never(300+250, changed+2, changed+4)
				f.never(400+100, changed+4, changed+6)
			}
			link.Heal()
			if onLoss == etcd.Hold { // A lost lease has effect until the process is in a plan again.
				f.until(now() + int64((ttl+2*propagation)/time.Second) + late)
			}
			from := f.settled(400, 4)
			f.until(from + 1)
			f.never(400, from, from+1)
		})
	}
}
