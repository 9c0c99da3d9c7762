package meter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/meter/journal"
)

// collecting is an Output that keeps the records by their ids.
type collecting struct {
	mu      sync.Mutex
	records map[journal.ID]journal.Record
	fail    error
	calls   int
}

func newCollecting() *collecting { return &collecting{records: map[journal.ID]journal.Record{}} }

func (*collecting) Name() string { return "collecting" }
func (*collecting) Close() error { return nil }

func (c *collecting) Deliver(_ context.Context, all []journal.Record) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.fail != nil {
		return 0, c.fail
	}
	for i := range all {
		c.records[all[i].ID] = all[i]
	}
	return len(all), nil
}

// sum is what records say of one customer, quota and minute.
type sum struct{ admitted, metered, refused int64 }

// sums adds up the records by customer, quota and minute.
func (c *collecting) sums() map[string]sum {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]sum{}
	for _, r := range c.records {
		key := fmt.Sprint(customerOf(&r), " ", r.Others, " ", r.Quota, " ", r.Minute)
		s := all[key]
		all[key] = sum{s.admitted + r.Admitted, s.metered + r.Metered, s.refused + r.Refused}
	}
	return all
}

func opened(t *testing.T, c Config) *Meter {
	t.Helper()
	if c.Folder == "" {
		c.Folder = t.TempDir()
	}
	c.Instance = "i"
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func closed(t *testing.T, m *Meter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		t.Error(err)
	}
}

func used(customer string, minute, n int64) headgate.Usage {
	return headgate.Usage{Customer: customer, Quota: "calls", At: headgate.Instant(minute * int64(time.Minute)), Admitted: n}
}

// TestAddsUp: random changes from several goroutines over some minutes. The records add up to the twin's sums, whatever
// second they were appended in.
func TestAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newCollecting()
		m := opened(t, Config{Outputs: []Output{out}})
		var mu sync.Mutex
		want := map[string]sum{}
		var workers sync.WaitGroup
		for worker := range uint64(4) {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(worker, 3))
				for range 500 {
					u := used(fmt.Sprint("c", r.IntN(20)), r.Int64N(3), r.Int64N(9)-2)
					u.Metered, u.Refused, u.Shadow = r.Int64N(5), r.Int64N(5), r.IntN(5) == 0
					if u.Correction = u.Admitted < 0; u.Correction {
						u.Refused = 0
					}
					m.Count(u)
					mu.Lock()
					key := fmt.Sprint(u.Customer, " ", false, " calls ", minuteOf(u.At))
					s := want[key]
					want[key] = sum{s.admitted + u.Admitted, s.metered + u.Metered, s.refused + u.Refused}
					mu.Unlock()
					<-time.After(time.Duration(r.IntN(100)) * time.Millisecond)
				}
			})
		}
		workers.Wait()
		closed(t, m)
		got := out.sums()
		for key, s := range want {
			if got[key] != s {
				t.Errorf("%s: the records have %+v, want %+v", key, got[key], s)
			}
		}
		if len(got) > len(want) {
			t.Errorf("the records have %d sums, want %d", len(got), len(want))
		}
	})
}

// TestOthers: a minute has two customers, and further ones are summed. A correction follows its decision.
func TestOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newCollecting()
		m := opened(t, Config{Outputs: []Output{out}, MaxCustomers: 2})
		for i, want := range []bool{false, false, true, true} {
			if got := m.Count(used(fmt.Sprint("c", i), 1, 1)); got != want {
				t.Errorf("customer %d is under the others: %t, want %t", i, got, want)
			}
		}
		m.Count(used("c0", 1, 1))
		m.Count(used("c3", 2, 1)) // Another minute has two customers too.
		back := used("c3", 1, -1)
		back.Correction, back.Others = true, true
		m.Count(back)
		back = used("c0", 1, -1)
		back.Correction = true
		m.Count(back)
		m.Count(used("others", 2, 7)) // A customer can have this name.
		closed(t, m)
		want := map[string]sum{
			"c0 false calls 1": {admitted: 1}, "c1 false calls 1": {admitted: 1}, "others true calls 1": {admitted: 1},
			"c3 false calls 2": {admitted: 1}, "others false calls 2": {admitted: 7},
		}
		if got := out.sums(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if m.Stats().Others != 3 {
			t.Errorf("%d changes are under the others, want 3", m.Stats().Others)
		}
	})
}

// TestTableIsBounded: a clock that jumps makes rows in many minutes. Their number is bounded, and the sum is complete or counted.
func TestTableIsBounded(t *testing.T) {
	table := newTable(10)
	var counted int64
	for minute := range int64(5000) {
		table.add(&headgate.Usage{Customer: fmt.Sprint(minute % 7), Quota: "q", At: headgate.Instant(minute * int64(time.Minute)), Admitted: 1})
	}
	if rows := table.rows.Load(); rows > 2*rowFactor*10 {
		t.Errorf("there are %d rows", rows)
	}
	for _, r := range table.collect(nil, time.Unix(0, 0)) {
		counted += r.Admitted
	}
	if lost := int64(table.lost.Load()); counted+lost != 5000 || counted == 0 {
		t.Errorf("%d changes are counted and %d lost, of 5000", counted, lost)
	}
	for second := range int64(idleSeconds + 2*sweepSeconds) {
		if got := table.collect(nil, time.Unix(second, 0)); len(got) > 0 {
			t.Fatalf("records without changes: %v", got)
		}
	}
	if rows := table.rows.Load(); rows != 0 {
		t.Errorf("%d rows stay without a change", rows)
	}
}

// TestSumsSaturate: clients send the highest cost many times a second. The sum keeps its sign.
func TestSumsSaturate(t *testing.T) {
	table := newTable(10)
	for range 2000 {
		table.add(&headgate.Usage{Customer: "c", Quota: "q", Refused: headgate.MaxUnits, Admitted: -headgate.MaxUnits})
	}
	if all := table.collect(nil, time.Unix(0, 0)); len(all) != 1 || all[0].Refused != math.MaxInt64 || all[0].Admitted != math.MinInt64 {
		t.Errorf("the records are %+v", all)
	}
}

// TestEveryMinuteHasItsCustomers: each minute has as many customers as allowed, for some minutes. None is under the others, also if it
// comes at the start and the end of the minute only. The table is collected twice a second, as a Meter does.
func TestEveryMinuteHasItsCustomers(t *testing.T) {
	table := newTable(5)
	for second := range int64(12 * 60) {
		minute := second / 60
		for c := range 5 {
			u := used(fmt.Sprint("c", (minute*5+int64(c))%100), minute, 1)
			if u.At += headgate.Instant(second % 60 * int64(time.Second)); c == 0 && second%60 > 2 && second%60 < 55 {
				continue
			}
			if table.add(&u) {
				t.Fatalf("in second %d, customer %s is under the others, with %d rows", second, u.Customer, table.rows.Load())
			}
		}
		for range 2 {
			table.collect(nil, time.Unix(second+1, 0))
		}
	}
}

// TestClockSetBack: the clock of the store is set back by an hour, after it has run for as long. No customer is under the others.
func TestClockSetBack(t *testing.T) {
	table, now := newTable(5), time.Unix(0, 0)
	for _, minute := range []int64{600, 540, 600} {
		for range 60 {
			for c := range 6 {
				u := used(fmt.Sprint("c", c), minute, 1)
				if others := table.add(&u); others != (c == 5) {
					t.Fatalf("in minute %d, customer %d is under the others: %t", minute, c, others)
				}
			}
			minute++
			for range 60 {
				now = now.Add(time.Second)
				table.collect(nil, now)
			}
		}
	}
}

// TestRefundsAreBounded: refunds for many names take the places of customers, as decisions do.
func TestRefundsAreBounded(t *testing.T) {
	table := newTable(2)
	for c := range 100 {
		u := used(fmt.Sprint("c", c), 1, -1)
		table.add(&u)
	}
	if rows := table.rows.Load(); rows > 2+shardCount {
		t.Errorf("there are %d rows, want 2 and those of the others", rows)
	}
}

// TestLateCorrection: the row of a decision is gone, and the minutes since have filled the table. The correction keeps its customer.
func TestLateCorrection(t *testing.T) {
	table := newTable(2)
	for minute := range int64(rowFactor) {
		for c := range 2 {
			u := used(fmt.Sprint("new", c), 10+minute, 1)
			table.add(&u)
		}
	}
	u := used("c", 1, -1)
	u.Correction = true
	if table.add(&u) {
		t.Error("the correction is under the others")
	}
	found := false
	for _, r := range table.collect(nil, time.Unix(0, 0)) {
		found = found || r.Customer == "c" && r.Admitted == -1 && r.Correction
	}
	if !found {
		t.Error("the records have no correction of the customer")
	}
}

func TestCountAllocatesNothing(t *testing.T) {
	table := newTable(10)
	u := used("customer", 5, 1)
	if n := testing.AllocsPerRun(100, func() { table.add(&u) }); n != 0 {
		t.Errorf("a change allocates %v times, want 0", n)
	}
	dst := make([]journal.Record, 0, 10)
	if n := testing.AllocsPerRun(100, func() { table.add(&u); table.collect(dst, time.Unix(0, 0)) }); n != 0 {
		t.Errorf("a collection allocates %v times, want 0", n)
	}
}

func BenchmarkCount(b *testing.B) {
	table := newTable(DefaultMaxCustomers)
	var names [1000]string
	for i := range names {
		names[i] = fmt.Sprint("customer-", i)
	}
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			u := used(names[i%len(names)], 5, 1)
			table.add(&u)
		}
	})
}

// TestSlowOutput: an output that fails for a day does not hold the other one, and then gets everything. Virtual time.
func TestSlowOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := &named{newCollecting(), "fast"}, &named{newCollecting(), "slow"}
		slow.fail = &RetryError{fmt.Errorf("away"), time.Hour} // Its Retry-After is bounded.
		m := opened(t, Config{Outputs: []Output{fast, slow}})
		for minute := range int64(24 * 60) {
			m.Count(used("c", minute, 1))
			<-time.After(time.Minute)
		}
		if len(fast.records) < 1439 || len(slow.records) != 0 {
			t.Errorf("the fast output has %d records, and the slow one %d", len(fast.records), len(slow.records))
		}
		s := m.Stats().Outputs[1]
		if s.Pending != 1440 || s.Dropped != 0 || s.Oldest < 23*time.Hour || s.Error != "away" || s.Failures < 24*60/11-5 {
			t.Errorf("the slow output: %+v", s)
		}
		slow.mu.Lock()
		slow.fail = nil
		slow.mu.Unlock()
		<-time.After(12 * time.Minute)
		if s := m.Stats().Outputs[1]; s.Pending != 0 || s.Acknowledged != 1440 || s.Error != "" || len(slow.records) != 1440 {
			t.Errorf("after the day: %+v", s)
		}
		closed(t, m)
	})
}

type named struct {
	*collecting

	name string
}

func (n *named) Name() string { return n.name }

// TestCountAfterClose: a change that comes too late is lost, counted and logged once.
func TestCountAfterClose(t *testing.T) {
	var log strings.Builder
	m := opened(t, Config{Outputs: []Output{newCollecting()}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	closed(t, m)
	m.Count(used("c", 1, 1))
	m.Count(used("c", 1, 1))
	if n := strings.Count(log.String(), "level=ERROR"); m.Stats().Lost != 2 || n != 1 {
		t.Errorf("%d changes are lost, with %d lines, want 2 and 1", m.Stats().Lost, n)
	}
}

// TestUnsavedPlaces: the place of an output cannot be saved many times a second. One line says so.
func TestUnsavedPlaces(t *testing.T) {
	var log strings.Builder
	d := delivery{out: newCollecting(), log: slog.New(slog.NewTextHandler(&log, nil))}
	for i := range 600 {
		d.unsaved(errFull, time.Unix(0, 0).Add(time.Duration(i)*100*time.Millisecond))
	}
	d.unsaved(errFull, time.Unix(0, 0).Add(time.Minute))
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines in a minute and after it, want 2", n)
	}
}

type fileMode = fs.FileMode

var errFull = errors.New("the disk is full")
