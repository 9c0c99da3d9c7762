package meter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/meter/journal"
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
	for range 3 * idleRounds {
		if got := table.collect(nil, time.Unix(0, 0)); len(got) > 0 {
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

// TestEveryMinuteHasItsCustomers: each minute has as many customers as allowed, for some minutes. None is under the others.
func TestEveryMinuteHasItsCustomers(t *testing.T) {
	table, second := newTable(5), int64(0)
	for minute := range int64(12) {
		for range 60 {
			for c := range 5 {
				u := used(fmt.Sprint("c", (minute*5+int64(c))%100), minute, 1)
				u.At = headgate.Instant(second * int64(time.Second))
				if table.add(&u) {
					t.Fatalf("in second %d, customer %s is under the others, with %d rows", second, u.Customer, table.rows.Load())
				}
			}
			second++
			table.collect(nil, time.Unix(second, 0))
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

// TestFullDisk: the journal cannot be written for an hour. Changes add up in memory, and then each is recorded once.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &full{Files: journal.Machine()}
		out := newCollecting()
		m := opened(t, Config{Outputs: []Output{out}, Files: files})
		files.set(true)
		for i := range int64(3600) {
			m.Count(used(fmt.Sprint("c", i%10), i/60, 1))
			<-time.After(time.Second)
		}
		if s := m.Stats(); s.Journal.Faults < 3500 || s.Journal.Written != 0 {
			t.Errorf("with a full disk: %+v", s.Journal)
		}
		files.set(false)
		<-time.After(3 * time.Second)
		closed(t, m)
		var total int64
		for _, s := range out.sums() {
			total += s.admitted
		}
		if total != 3600 || m.Stats().Lost != 0 {
			t.Errorf("the records add up to %d, and %d are lost; want 3600 and 0", total, m.Stats().Lost)
		}
	})
}

// TestSlowSync: a sync of the disk takes a minute. Usage is written every second all the same.
func TestSlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := opened(t, Config{Outputs: []Output{newCollecting()}, Files: slowSyncs{journal.Machine()}})
		<-time.After(time.Second / 2)
		for range 30 {
			m.Count(used("c", 1, 1))
			<-time.After(time.Second)
		}
		if written := m.Stats().Journal.Written; written < 29 {
			t.Errorf("%d records are written within 30s, want 29", written)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// slowSyncs is a file system whose syncs of records take a minute.
type slowSyncs struct{ journal.Files }

func (s slowSyncs) OpenFile(name string, flags int, mode fileMode) (journal.File, error) {
	f, err := s.Files.OpenFile(name, flags, mode)
	if err != nil || mode == 0 { // A folder.
		return f, err
	}
	return slowSync{f}, nil
}

type slowSync struct{ journal.File }

func (s slowSync) Sync() error {
	<-time.After(time.Minute)
	return s.File.Sync()
}

// full is a file system without capacity while it is set.
type full struct {
	journal.Files

	mu  sync.Mutex
	now bool
}

func (f *full) set(now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now
}

func (f *full) OpenFile(name string, flags int, mode fileMode) (journal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now {
		return nil, errFull
	}
	return f.Files.OpenFile(name, flags, mode)
}

func TestCloseWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newCollecting()
		out.fail = errFull
		m := opened(t, Config{Outputs: []Output{out}})
		m.Count(used("c", 1, 1))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun := time.Now()
		_ = m.Close(ctx)
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("Close took %v, want 5s", took)
		}
		if out.calls < 3 {
			t.Errorf("%d attempts in five seconds", out.calls)
		}
		again := newCollecting()
		m = opened(t, Config{Outputs: []Output{again}, Folder: m.config.Folder})
		closed(t, m)
		if got := again.sums(); !slices.Equal([]sum{got["c false calls 1"]}, []sum{{admitted: 1}}) {
			t.Errorf("after a restart: %v", got)
		}
	})
}

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
