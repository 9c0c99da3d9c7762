package client_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client/internal/leases"
	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/pace"
)

// patience is the longest wait of a call.
const patience = time.Second

// process is a program with a pacer. Its calls come at random times.
type process struct {
	pacer *pace.Pacer
	rand  *rand.Rand
	end   context.CancelFunc
	ended sync.WaitGroup

	mu      sync.Mutex // Guards the fields below.
	rate    float64    // calls a second
	sent    []time.Time
	waits   []time.Duration
	refused int
}

// start starts a process with a client of its own.
func start(tb testing.TB, dial leases.Dial, seed uint64, rate float64) *process {
	tb.Helper()
	k, err := client.New(client.Config{Servers: []string{"a"}, Dial: dial})
	if err != nil {
		tb.Fatal(err)
	}
	source, err := client.NewPace(k, "mail")
	if err != nil {
		tb.Fatal(err)
	}
	p := &process{rand: rand.New(rand.NewPCG(seed, 11)), rate: rate}
	if p.pacer, err = pace.New(pace.Config{Provider: "mail", Source: source, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		tb.Fatal(err)
	}
	ctx, end := context.WithCancel(tb.Context())
	p.end = func() {
		end()
		p.ended.Wait()
		p.pacer.Close()
		_ = k.Close()
	}
	p.ended.Go(func() { p.call(ctx) })
	return p
}

// set changes the demand.
func (p *process) set(rate float64) {
	p.mu.Lock()
	p.rate = rate
	p.mu.Unlock()
}

// call makes calls until ctx ends.
func (p *process) call(ctx context.Context) {
	next := time.Now()
	for {
		p.mu.Lock()
		rate := p.rate
		p.mu.Unlock()
		const longest = 20 * time.Millisecond // Then the rate is read again: such times have no memory.
		gap := time.Duration(p.rand.ExpFloat64() / rate * float64(time.Second))
		next = next.Add(min(gap, longest))
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if gap > longest {
			continue
		}
		came := next
		p.pacer.AcquireFunc(1, patience, func(_ headgate.Instant, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if err != nil {
				p.refused++
				return
			}
			p.sent = append(p.sent, time.Now())
			p.waits = append(p.waits, time.Since(came))
		})
	}
}

// between returns the calls that went from one time to another, and their waits.
func (p *process) between(from, to time.Time) (calls int, waits []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, at := range p.sent {
		if !at.Before(from) && at.Before(to) {
			calls++
			waits = append(waits, p.waits[i])
		}
	}
	return calls, waits
}

func quantile(waits []time.Duration, q float64) time.Duration {
	slices.Sort(waits)
	if len(waits) == 0 {
		return 0
	}
	return waits[min(int(q*float64(len(waits))), len(waits)-1)]
}

// fleet has a group with one resource, and processes with the given rates of calls.
func fleet(tb testing.TB, capacity int64, seed uint64, rates ...float64) (*leases.Group, *leases.Server, []*process) {
	tb.Helper()
	g := leases.New(tb, state.Config{
		Resources: []state.Resource{{Match: "mail", Capacity: 1000 * capacity, Algorithm: state.MaxMin, Safe: -1}},
		Lease:     15 * time.Second, Refresh: 5 * time.Second,
	})
	a := g.Start("a")
	var all []*process
	for i, rate := range rates {
		all = append(all, start(tb, g.Dial, seed*1000+uint64(i), rate))
	}
	return g, a, all
}

// oneAndNineteen runs the case of the documents: one process asks 1,000/s and nineteen ask 5/s of
// 500/s. It returns the used part of the limit, the waits of the small ones, the largest number of calls
// in a second, and the reports a second.
func oneAndNineteen(tb testing.TB, seed uint64, warm, long time.Duration) (used float64, small []time.Duration, worst int, reports float64) {
	tb.Helper()
	rates := []float64{1000}
	for range 19 {
		rates = append(rates, 5)
	}
	g, a, all := fleet(tb, 500, seed, rates...)
	time.Sleep(warm) //nolint:forbidigo // In a bubble of synctest, or in a soak test.
	from := time.Now()
	_, before := a.Usage("mail")
	time.Sleep(long) //nolint:forbidigo // As above.
	to := time.Now()
	_, after := a.Usage("mail")
	for _, p := range all {
		p.end()
	}
	g.Close()
	calls := 0
	for i, p := range all {
		n, waits := p.between(from, to)
		calls += n
		if i > 0 {
			small = append(small, waits...)
		}
	}
	return float64(calls) / (500 * long.Seconds()), small, worstSecond(all, from, to), float64(after-before) / long.Seconds()
}

// worstSecond returns the largest number of calls in any second.
func worstSecond(all []*process, from, to time.Time) (worst int) {
	var times []time.Time
	for _, p := range all {
		p.mu.Lock()
		for _, at := range p.sent {
			if !at.Before(from) && at.Before(to) {
				times = append(times, at)
			}
		}
		p.mu.Unlock()
	}
	slices.SortFunc(times, time.Time.Compare)
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) > time.Second {
			first++
		}
		worst = max(worst, i-first+1)
	}
	return worst
}

// TestOneAndNineteen: at least 94 % of the limit is used, and 99 % of the calls of the small processes wait
// for at most 0.7 s. In no second are there more calls than the leases allow.
func TestOneAndNineteen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, small, worst, reports := oneAndNineteen(t, 1, 20*time.Second, 60*time.Second)
		p99 := quantile(small, 0.99)
		t.Logf("%.1f %% used, waits of the small ones: median %v, p99 %v; %d calls in the worst second; %.0f reports a second",
			100*used, quantile(small, 0.5), p99, worst, reports)
		if used < 0.94 || p99 > 700*time.Millisecond {
			t.Errorf("%.1f %% used and p99 %v, want at least 94 %% and at most 0.7 s", 100*used, p99)
		}
		if most := 500*11/10 + 20; worst > most {
			t.Errorf("%d calls in a second, want at most %d", worst, most)
		}
	})
}

// TestClosedClient: a pacer spends nothing of a lease that its client has released.
func TestClosedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _, _ := fleet(t, 500, 1)
		k, err := client.New(client.Config{Servers: []string{"a"}, Dial: g.Dial})
		if err != nil {
			t.Fatal(err)
		}
		source, err := client.NewPace(k, "mail")
		if err != nil {
			t.Fatal(err)
		}
		p, err := pace.New(pace.Config{Provider: "mail", Source: source, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Acquire(t.Context(), patience); err != nil {
			t.Error(err)
		}
		_ = k.Close()
		synctest.Wait()
		if err := p.Acquire(t.Context(), patience); !errors.Is(err, pace.ErrClosed) {
			t.Errorf("%v after the client was closed, want ErrClosed", err)
		}
		p.Close()
		g.Close()
	})
}

// TestAnswered: the provider refuses a tenth of the calls, and the servers lower the capacity to the least one.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := leases.New(t, state.Config{
			Resources: []state.Resource{{Match: "mail", Capacity: 20_000, MinCapacity: 15_000, Algorithm: state.MaxMin, Safe: -1}},
			Lease:     15 * time.Second, Refresh: 5 * time.Second,
		})
		a := g.Start("a")
		k, err := client.New(client.Config{Servers: []string{"a"}, Dial: g.Dial})
		if err != nil {
			t.Fatal(err)
		}
		source, err := client.NewPace(k, "mail")
		if err != nil {
			t.Fatal(err)
		}
		p, err := pace.New(pace.Config{Provider: "mail", Source: source, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for end, calls := time.Now().Add(time.Minute), 0; time.Now().Before(end); calls++ {
			if err := p.Acquire(t.Context(), patience); err == nil {
				source.Answered(1, calls%10 == 0)
			}
		}
		if usage, _ := a.Usage("mail"); usage.Capacity > 16_000 {
			t.Errorf("the capacity is %d, want about 15,000", usage.Capacity)
		}
		p.Close()
		_ = k.Close()
		g.Close()
	})
}

// TestFollows: one process becomes busy beside three idle ones, and has the limit within 2 s.
func TestFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _, all := fleet(t, 500, 1, 1, 1, 1, 1)
		time.Sleep(20 * time.Second) //nolint:forbidigo // In a bubble of synctest.
		all[0].set(1000)
		busy := time.Now()
		time.Sleep(10 * time.Second) //nolint:forbidigo // In a bubble of synctest.
		all[0].set(1)
		all[1].set(1000)
		shift := time.Now()
		time.Sleep(20 * time.Second) //nolint:forbidigo // In a bubble of synctest.
		for _, p := range all {
			p.end()
		}
		g.Close()
		n, _ := all[0].between(busy.Add(2*time.Second), busy.Add(4*time.Second))
		t.Logf("%d calls in the third and fourth second", n)
		if n < 94*2*500/100 {
			t.Errorf("%d calls in the third and fourth second, want at least 94 %% of 1,000", n)
		}
		for second := range 20 {
			from := shift.Add(time.Duration(second) * time.Second)
			a, _ := all[0].between(from, from.Add(time.Second))
			b, _ := all[1].between(from, from.Add(time.Second))
			t.Logf("second %d after the shift: %d and %d", second+1, a, b)
			if second >= 2 && b < 94*500/100 {
				t.Errorf("%d calls in second %d after the shift, want at least 94 %% of 500", b, second+1)
			}
		}
	})
}
