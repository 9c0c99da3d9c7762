//go:build soak && unix

package fleet

import (
	"testing"
	"time"

	"github.com/headgate/headgate/pace/etcd"
)

// TestSoakHalfAMinuteWithoutEtcd kills or pauses etcd for half a minute. With hold, the
// processes continue. With stop, all processes stop in time. Afterwards, the whole limit is
// used again.
func TestSoakHalfAMinuteWithoutEtcd(t *testing.T) {
	for name, onLoss := range map[string]etcd.OnLoss{"hold": etcd.Hold, "stop": etcd.Stop} {
		for _, silent := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				f := newFleet(t, 50_000, settings{OnLoss: onLoss})
				f.start(8)
				f.settled(50_000, 8)
				if silent {
					f.server.Pause()
				} else {
					f.server.Kill()
				}
				gone := now()
				f.until(gone + 30)
				if onLoss == etcd.Hold {
					f.used(0.995, 50_000, gone, gone+30)
				} else {
					f.never(0, gone+int64(ttl/time.Second)+1, gone+30)
				}
				if silent {
					f.server.Resume()
				} else {
					f.server.Restart()
				}
				from := f.settled(50_000, 8)
				f.until(from + 5)
				f.never(50_000, f.settings.First, from+5)
				f.used(0.995, 50_000, from, from+5)
			})
		}
	}
}

// TestSoakComeAndGo kills and starts processes and etcd, and changes the limit, for two
// minutes. No second has more than the larger of the old and the new limit.
func TestSoakComeAndGo(t *testing.T) {
	f := newFleet(t, 10_000, settings{OnLoss: etcd.Stop})
	f.start(6)
	from := f.settled(10_000, 6)
	limits := []int64{10_000, 2_000, 20_000, 500, 10_000}
	for round, next := range limits[1:] {
		for _, m := range f.all[len(f.all)-2:] {
			m.kill()
		}
		f.start(3)
		f.until(now() + 5)
		f.server.Kill()
		f.until(now() + 10)
		f.server.Restart()
		f.until(now() + 5)
		f.set(next)
		settled := f.settled(next, 1)
		f.never(max(limits[round], next), from, settled)
		from = settled
	}
}
