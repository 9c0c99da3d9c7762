package throttler_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
)

// TestReloadReachesTheQueue: three requests of 300 ms wait behind one. A reload reaches them although no
// request arrives: a higher limit admits them, and without a throttle nothing holds them back.
func TestReloadReachesTheQueue(t *testing.T) {
	for _, c := range []struct {
		name    string
		next    func(*throttler.Config) bool // false removes the stage
		instant string                       // the time of some lines
		lines   int                          // how many: three starts, or an end and a start
	}{
		{"a higher limit", func(c *throttler.Config) bool { c.Concurrency = 4; return true }, "\n100: ", 3},
		{"mode off", func(c *throttler.Config) bool { c.Mode = guard.Off; return true }, "\n100: ", 3},
		{"mode shadow", func(c *throttler.Config) bool { c.Mode = guard.Shadow; return true }, "\n100: ", 3},
		{"no stage", func(*throttler.Config) bool { return false }, "\n100: ", 3},
		{"another name of the class", func(c *throttler.Config) bool { c.Class = 0; return true }, "\n300: ", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				settings := oneAtATime()
				settings.Deadline = 5 * time.Second
				s := newService(t, settings)
				for _, name := range []string{"a", "b", "c", "d"} {
					s.send(name, "300ms", trustedPeer)
				}
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // In a bubble.
				s.reload(settings, c.next)
				time.Sleep(5 * time.Second) //nolint:forbidigo // In a bubble.
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				log := strings.Join(s.log, "\n")
				if n := strings.Count(log, c.instant); n != c.lines || strings.Count(log, "gets 200") != 4 {
					t.Errorf("%d lines have the time %q, want %d, and 4 answers:\n%s", n, c.instant, c.lines, log)
				}
				if l, _ := s.stage.Load(); l.InFlight != 0 || l.QueuedWork != 0 || l.Queued != [4]int{} {
					t.Errorf("at the end the load is %+v", l)
				}
			})
		})
	}
}

// reload gives the guard another configuration of the stage, or none.
func (s *service) reload(c throttler.Config, change func(*throttler.Config) bool) {
	s.Helper()
	next := guard.Config{}
	if change(&c) {
		stage, err := s.stage.With(c)
		if err != nil {
			s.Fatal(err)
		}
		next.Stages = []guard.Stage{stage}
	}
	if err := s.guard.Reload(next); err != nil {
		s.Fatal(err)
	}
}
