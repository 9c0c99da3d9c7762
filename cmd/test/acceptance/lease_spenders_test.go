package acceptance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/pace"
)

// tenth is the resolution of a tally.
const tenth = 100 * time.Millisecond

// tenthOf gives the tenth of a second of a time, counted from 1970. All processes of a machine have the same.
func tenthOf(at time.Time) int64 { return at.UnixNano() / int64(tenth) }

// tally counts the units that were spent in each tenth of a second.
type tally struct {
	mu    sync.Mutex // Guards units.
	units map[int64]int
}

// count counts a unit that is spent now.
func (y *tally) count() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.units[tenthOf(time.Now())]++
}

// add counts units of a tenth of a second.
func (y *tally) add(at int64, units int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.units[at] += units
}

// sum gives the units of the tenths in [from, to).
func (y *tally) sum(from, to int64) (units int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for at := from; at < to; at++ {
		units += y.units[at]
	}
	return units
}

// spenders are holders that spend their leases. Each has a client and a connection of its own.
type spenders struct {
	tally

	pacers  []*pace.Pacer
	clients []*client.Client
	stop    chan struct{}
	ended   sync.WaitGroup
}

func newSpenders() *spenders {
	return &spenders{tally: tally{units: map[int64]int{}}, stop: make(chan struct{})}
}

// add starts a holder below a leaf.
func (s *spenders) add(at string, mode client.OnLoss) error {
	k, err := client.New(client.Config{Servers: []string{at}, Token: "web", OnLoss: mode})
	if err != nil {
		return err
	}
	source, err := client.NewPace(k, "db/orders")
	if err != nil {
		return err
	}
	p, err := pace.New(pace.Config{Provider: "orders", Source: source, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	s.pacers, s.clients = append(s.pacers, p), append(s.clients, k)
	return nil
}

// call makes calls of random holders, at a rate by second, until the end.
func (s *spenders) call(rate func() int64) {
	const every = 10 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, due := time.Now(), 0.0
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		due += now.Sub(last).Seconds() * float64(rate())
		for last = now; due >= 1; due-- {
			s.pacers[rand.IntN(len(s.pacers))].AcquireFunc(1, time.Second, func(_ headgate.Instant, err error) {
				if err == nil {
					s.count()
				}
			})
		}
	}
}

func (s *spenders) close() {
	close(s.stop)
	s.ended.Wait()
	for i, p := range s.pacers {
		p.Close()
		_ = s.clients[i].Close()
	}
}

// spendersPart names the variable that makes the test binary run as spenders. Its text is a spendersPlan.
const spendersPart = "HEADGATE_TEST_SPENDERS"

// spendersPlan describes the spenders of a process.
type spendersPlan struct {
	At      string        `json:"at"` // the leaf
	Mode    client.OnLoss `json:"mode"`
	Holders int           `json:"holders"`
	Calls   int64         `json:"calls"` // a second
}

// spendApart starts spenders in their own process, until the end of the test. What they spend is added to a tally, about a tenth of a
// second later.
func spendApart(t *testing.T, plan spendersPlan, to *tally) {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	life, stdout := startApart(t, spendersPart+"="+string(text))
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var at int64
			var units int
			if _, err := fmt.Sscan(lines.Text(), &at, &units); err != nil {
				t.Errorf("a process of spenders says %q: %v", lines.Text(), err)
			}
			to.add(at, units)
		}
	})
	t.Cleanup(func() {
		_ = life.Close()
		reading.Wait()
	})
}

// runSpenders spends until standard input is closed. It prints a line for each tenth of a second, with its number and its units.
func runSpenders(text string) int {
	var plan spendersPlan
	s := newSpenders()
	err := json.Unmarshal([]byte(text), &plan)
	for i := 0; err == nil && i < plan.Holders; i++ {
		err = s.add(plan.At, plan.Mode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.ended.Go(func() { s.call(func() int64 { return plan.Calls }) })
	s.ended.Go(s.print)
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.close()
	return 0
}

// print prints the units of each tenth of a second after it has ended.
func (s *spenders) print() {
	tick := time.NewTicker(tenth)
	defer tick.Stop()
	for next := tenthOf(time.Now()); ; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		for now := tenthOf(time.Now()); next < now; next++ {
			fmt.Println(next, s.sum(next, next+1))
		}
	}
}
