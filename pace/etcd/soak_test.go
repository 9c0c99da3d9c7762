//go:build soak

package etcd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestSoakChaos injects all faults for a minute: instances crash, leave, join, and lose their
// connections. etcd is paused and killed, and the limit changes between two values. With Stop,
// no window has more than the greater value.
func TestSoakChaos(t *testing.T) {
	f := startFleet(t)
	f.config.OnLoss, f.config.TTL = Stop, time.Second
	f.set(1000, window, Even)
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	pause := func(most time.Duration) {
		time.Sleep(time.Duration(random.Int64N(int64(most)))) //nolint:forbidigo // sleep: what goes wrong does so for some time
	}
	var living []*instance
	names := 0
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		var one *instance
		at := 0
		if len(living) > 0 {
			at = random.IntN(len(living))
			one = living[at]
		}
		switch dice := random.IntN(12); {
		case len(living) < 3 || dice < 3 && len(living) < 8:
			names++
			living = append(living, f.join(fmt.Sprint("n", names)))
		case dice == 3:
			one.crash()
			living = append(living[:at], living[at+1:]...)
		case dice == 4:
			one.end()
			living = append(living[:at], living[at+1:]...)
		case dice == 5: // The instance restarts with its ID.
			one.crash()
			living[at] = f.join(one.id)
		case dice < 8:
			[]func(){one.link.HalfOpen, one.link.NoAnswers, one.link.Cut, one.link.Reset}[random.IntN(4)]()
			pause(2 * time.Second)
			one.link.Heal()
		case dice == 8:
			one.link.Latency(0, time.Duration(random.IntN(400))*time.Millisecond, 50*time.Millisecond)
			pause(time.Second)
			one.link.Heal()
		case dice == 9:
			f.server.Pause()
			pause(2 * time.Second)
			f.server.Resume()
		case dice == 10:
			f.server.Restart()
		default:
			f.set([]int64{1000, 600}[random.IntN(2)], window, Even)
		}
		one = living[random.IntN(len(living))]
		one.wants(random.Int64N(2000))
		pause(500 * time.Millisecond)
	}
	f.set(1000, window, Even)
	f.share(1000, living...)
	f.atMost(1000)
	used := int64(0)
	for _, units := range f.sums() {
		used += units
	}
	t.Logf("%d instances, %d units a window", names, used/int64(len(f.sums())))
}
