package scenes

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
	"github.com/headgate/headgate/test/bench/servers"
)

const (
	// paceOpenRate is one that no loop reaches, so that nobody waits.
	paceOpenRate = 1e9
	// paceRate is that of a large campaign, and paceTick how often a generator that keeps
	// to it looks at the clock.
	paceRate = 300_000
	paceTick = time.Millisecond
)

// cpu names the meter of this process's processor time.
const cpu = "CPU"

// barredPacers are those of ours that have a bar.
func barredPacers() []string {
	return []string{limiters.PaceOff, limiters.PaceEven, limiters.PacePID}
}

// askedPacers are all that are asked for one after the other.
func askedPacers() []limiters.PacingMaker {
	return limiters.Pacers(append(barredPacers(), limiters.PaceFunc, limiters.XTimeAllow, limiters.XTimeWait, limiters.UberTake)...)
}

// paceOpen tells what a permit costs that is there, to so many goroutines at once.
func paceOpen(workers int) (*contest.Contest, error) {
	c := &contest.Contest{
		About:   "a permit that is there, with nobody waiting; all goroutines ask one limiter",
		Workers: workers,
	}
	clock, err := limiters.Floors()[0].New(limiters.Limit{})
	if err != nil {
		return nil, err
	}
	c.Sides = []contest.Side{{
		Name: limiters.TimeSince, Kind: contest.Floor, Run: func(_, n int) contest.Tally { return clock.Take(n) },
	}}
	for _, ours := range barredPacers() {
		q := contest.Question{Of: ours, Against: limiters.TimeSince}
		if workers == 1 {
			q.Bar = barPace
		}
		c.Questions = append(c.Questions, q)
	}
	for _, peer := range []string{limiters.XTimeAllow, limiters.XTimeWait, limiters.UberTake} {
		c.Questions = append(c.Questions, contest.Question{Of: limiters.PaceOff, Against: peer})
	}
	return c, addPacers(c, askedPacers(), paceOpenRate, func(p limiters.Pacing, n int) contest.Tally { return p.Take(n) })
}

// pacePaced tells how much of a processor permits use that are there, at a steady rate.
func pacePaced() (*contest.Contest, error) {
	const generator = "the generator alone"
	c := &contest.Contest{
		About: fmt.Sprintf("%d a second, in one goroutine that asks every %v for those that are due; nobody waits, since "+
			"there are twice as many. %.1f ns of processor time each are 1 %% of a core", paceRate, paceTick, 1e7/paceRate),
		Workers: 1,
		Least:   64 * contest.Batch,
		Sides: []contest.Side{{Name: generator, Kind: contest.Floor, Run: func(_, n int) contest.Tally {
			return paced(n, func(k int) contest.Tally { return contest.Tally{Allowed: k} })
		}}},
	}
	for _, ours := range barredPacers() {
		c.Questions = append(c.Questions, contest.Question{
			Of: ours, Against: generator, Meter: cpu, Difference: true, Bar: barPacePaced,
		})
	}
	err := addPacers(c, askedPacers(), 2*paceRate, func(p limiters.Pacing, n int) contest.Tally { return paced(n, p.Take) })
	meterCPU(c)
	return c, err
}

// paced lets take be called every tick for what is due, until n are done. What was missed
// while the machine was late is made up for.
func paced(n int, take func(int) contest.Tally) (t contest.Tally) {
	began := time.Now()
	for done := 0; done < n; {
		due := min(int(time.Since(began)*paceRate/time.Second)+1, n)
		t = t.Add(take(due - done))
		if done = due; done < n {
			time.Sleep(paceTick) //nolint:forbidigo // a generator's pause, which is measured by itself
		}
	}
	return t
}

// addPacers adds sides that keep to a rate, each of which does its work by run. When one
// cannot be made, all are closed.
func addPacers(
	c *contest.Contest, makers []limiters.PacingMaker, perSecond int64, run func(p limiters.Pacing, n int) contest.Tally,
) error {
	for _, m := range makers {
		p, err := m.New(perSecond)
		if err != nil {
			if c.Close != nil {
				c.Close()
			}
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		before := c.Close
		c.Close = func() {
			p.Close()
			if before != nil {
				before()
			}
		}
		c.Sides = append(c.Sides, contest.Side{
			Name: m.Name, Kind: m.Kind, Run: func(_, n int) contest.Tally { return run(p, n) },
		})
	}
	return nil
}

// meterCPU reads this process's processor time beside all sides.
func meterCPU(c *contest.Contest) {
	for i := range c.Sides {
		c.Sides[i].Meters = []contest.Meter{{Name: cpu, Read: servers.OwnCPU}}
	}
}
