package scenes

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

const (
	// paceOpenRate is a rate that no loop reaches, so that no caller waits.
	paceOpenRate = 1e9
	// paceRate is the rate of a large campaign. paceTick is the interval at which the
	// generator checks the clock to keep to paceRate.
	paceRate = 300_000
	paceTick = time.Millisecond
)

// cpu is the name of the meter of this process's processor time.
const cpu = "CPU"

// barredPacers returns the names of Headgate's pacers that have a bar.
func barredPacers() []string {
	return []string{limiters.PaceOff, limiters.PaceEven, limiters.PacePID}
}

// sequentialPacers returns the pacers that handle one request for a permit at a time.
func sequentialPacers() []limiters.PacingMaker {
	return limiters.Pacers(append(barredPacers(), limiters.PaceFunc, limiters.XTimeAllow, limiters.XTimeWait, limiters.UberTake)...)
}

// paceOpen measures the cost of an available permit, with the given number of goroutines.
func paceOpen(workers int) (*contest.Contest, error) {
	c := &contest.Contest{
		About:   "an available permit, without waiting; all goroutines use one limiter",
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
	return c, addPacers(c, sequentialPacers(), paceOpenRate, func(p limiters.Pacing, n int) contest.Tally { return p.Take(n) })
}

// pacePaced measures the processor time of available permits at a constant rate.
func pacePaced() (*contest.Contest, error) {
	const generator = "the generator alone"
	c := &contest.Contest{
		About: fmt.Sprintf("%d permits a second; one goroutine requests the due permits every %v; no caller waits, because "+
			"the limit is twice as high; %.1f ns of processor time per permit are 1 %% of a core", paceRate, paceTick, 1e7/paceRate),
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
	err := addPacers(c, sequentialPacers(), 2*paceRate, func(p limiters.Pacing, n int) contest.Tally { return paced(n, p.Take) })
	meterCPU(c)
	return c, err
}

// paced calls take at every tick with the number of permits that are due, until the sum is
// n. After a delay of the machine, take also receives the missed permits.
func paced(n int, take func(int) contest.Tally) (t contest.Tally) {
	began := time.Now()
	for done := 0; done < n; {
		due := min(int(time.Since(began)*paceRate/time.Second)+1, n)
		t = t.Add(take(due - done))
		if done = due; done < n {
			time.Sleep(paceTick) //nolint:forbidigo // The generator pauses here; a side of its own measures this time.
		}
	}
	return t
}

// addPacers adds one side for each maker. A side does its work with run. If a maker
// fails, addPacers closes all sides.
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

// meterCPU adds a meter of this process's processor time to all sides.
func meterCPU(c *contest.Contest) {
	for i := range c.Sides {
		c.Sides[i].Meters = []contest.Meter{{Name: cpu, Read: servers.OwnCPU}}
	}
}
