package meter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/meter/journal"
)

// Sync says when the journal is synced to the disk.
type Sync uint8

const (
	// SyncSecond syncs the records of a second after they are written, while those of the next ones are written. A crash of the machine
	// can lose two seconds, and more while a sync of the disk takes longer.
	SyncSecond Sync = iota
	// SyncRecord syncs each record before an output sees it. A crash of the machine can lose one second.
	SyncRecord
)

// syncNames has the words of configurations, in the order of the constants.
var syncNames = [...]string{"second", "record"}

// String gives the word that configurations use.
func (s Sync) String() string { return syncNames[min(int(s), len(syncNames)-1)] }

// Syncs lists every Sync, in the order of the constants.
func Syncs() []Sync { return []Sync{SyncSecond, SyncRecord} }

// DefaultMaxCustomers is the number of customers that a minute has by default.
const DefaultMaxCustomers = 100_000

// DefaultEvery is the pause between two deliveries by default.
const DefaultEvery = 5 * time.Second

// appendEvery is the time between two records of a customer and quota.
const appendEvery = time.Second

// Config configures a Meter.
type Config struct {
	// Instance names the instance in the ids of records. Folder has the journal, and belongs to this instance alone.
	Instance, Folder string
	// MaxBytes bounds the journal; 0 is journal.DefaultMaxBytes.
	MaxBytes int64
	Sync     Sync
	// Outputs deliver the records. The Meter closes them.
	Outputs []Output
	// Every is the pause between two deliveries of an output; 0 is DefaultEvery.
	Every time.Duration
	// MaxCustomers bounds the customers of one minute; 0 is DefaultMaxCustomers.
	MaxCustomers int
	// Log gets what is lost and what fails; nil logs nothing.
	Log *slog.Logger
	// Files is the file system of the journal, for tests; nil is that of the machine.
	Files journal.Files
}

// Meter counts what customers use, and has outputs deliver it. It is safe for concurrent use.
type Meter struct {
	config     Config
	table      *table
	journal    *journal.Journal
	deliveries []*delivery

	ending  chan struct{} // closed by Close, after the last record
	stop    chan struct{} // closed by Close, for the goroutine that appends
	stopped chan struct{}
	running sync.WaitGroup
	cancel  context.CancelFunc
	closing sync.Once
	ended   atomic.Bool // set by Close: changes are lost
	late    sync.Once   // for the log line about them
	closed  error

	syncs   chan struct{}    // wakes the goroutine that syncs
	pending []journal.Record // collected and not written; of the goroutine that appends
	waiting atomic.Int64     // the length of pending after the last attempt
}

// Open opens the journal, and starts to append and to deliver. The caller calls Close.
func Open(c Config) (*Meter, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Every <= 0 {
		c.Every = DefaultEvery
	}
	if c.MaxCustomers <= 0 {
		c.MaxCustomers = DefaultMaxCustomers
	}
	names := make([]string, len(c.Outputs))
	for i, out := range c.Outputs {
		names[i] = out.Name()
	}
	j, err := journal.Open(journal.Config{
		Folder: c.Folder, Instance: c.Instance, MaxBytes: c.MaxBytes, Readers: names, Log: c.Log, Files: c.Files,
	})
	if err != nil {
		return nil, fmt.Errorf("meter: %w", adviseFolder(journalFolder, c.Folder, err))
	}
	if err := start(c.Outputs, c.Folder); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Meter{
		config: c, table: newTable(c.MaxCustomers), journal: j, cancel: cancel,
		ending: make(chan struct{}), stop: make(chan struct{}), stopped: make(chan struct{}), syncs: make(chan struct{}, 1),
	}
	for i, out := range c.Outputs {
		d := &delivery{out: out, reader: j.Reader(names[i]), log: c.Log, every: c.Every, ending: m.ending}
		m.deliveries = append(m.deliveries, d)
		m.running.Go(func() { d.run(ctx) })
	}
	m.running.Go(m.runSyncs)
	go m.run()
	return m, nil
}

// Count implements headgate.Meter. It allocates nothing for a customer and quota that have a row in the minute.
// After Close, changes are lost, which Stats counts.
func (m *Meter) Count(u headgate.Usage) (others bool) {
	if m.ended.Load() {
		m.lose()
		return false
	}
	return m.table.add(&u)
}

// lose counts a change after Close, and logs the first one.
func (m *Meter) lose() {
	m.table.lost.Add(1)
	m.late.Do(func() {
		m.config.Log.Error("a request ended after metering was closed: its usage is lost, and later ones too", "lost", m.table.lost.Load())
	})
}

// run appends the changes of each second.
func (m *Meter) run() {
	defer close(m.stopped)
	defer close(m.syncs)
	ticker := time.NewTicker(appendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.append()
		case <-m.stop:
			m.append()
			return
		}
	}
}

// append writes the changes since the last call. After an error the collected records wait, and later changes add up in the table,
// which is bounded.
func (m *Meter) append() {
	if m.config.Sync == SyncSecond {
		defer m.wakeSyncs()
	}
	for range 2 { // What had to wait, and the changes since.
		if len(m.pending) == 0 {
			m.pending = m.table.collect(m.pending[:0], time.Now())
		}
		n, err := m.journal.Append(m.pending, m.config.Sync == SyncRecord)
		rest := copy(m.pending, m.pending[n:])
		clear(m.pending[rest:])
		m.pending = m.pending[:rest]
		m.waiting.Store(int64(rest))
		if err != nil {
			m.table.sweep(time.Now())
			return
		}
	}
}

// wakeSyncs has runSyncs sync what was written. It does not wait: a disk that syncs slowly must not keep usage in memory.
func (m *Meter) wakeSyncs() {
	select {
	case m.syncs <- struct{}{}:
	default:
	}
}

// runSyncs syncs the journal after each value of syncs, until it is closed.
func (m *Meter) runSyncs() {
	for range m.syncs {
		_ = m.journal.Sync() // The journal counts and logs it.
	}
}

// closeGrace is how long Close waits after its context has ended: for outputs that stop, and for the journal.
const closeGrace = time.Second

// ErrHung is the error of a Close whose disk does not answer. Records that were written are delivered after the next
// start.
var ErrHung = errors.New("meter: the disk of the journal or of an output does not answer: usage since the last record may be lost, " +
	"look at the disk before the next start")

// Close appends the last changes, and lets the outputs deliver until ctx ends. What they have not delivered then stays in the
// journal. The caller counts nothing more. Close returns within a second after the end of ctx, with ErrHung if a disk hangs: the
// goroutines that wait for the disk then go on.
func (m *Meter) Close(ctx context.Context) error {
	m.closing.Do(func() { m.closed = m.close(ctx) })
	return m.closed
}

func (m *Meter) close(ctx context.Context) error {
	m.ended.Store(true) // Before the last records are made, so that none is left in the table.
	close(m.stop)
	done := make(chan error, 1)
	go func() { done <- m.finish(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	m.cancel()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return ErrHung
	}
}

// finish ends the goroutines, and closes the outputs and the journal.
func (m *Meter) finish(ctx context.Context) error {
	<-m.stopped
	close(m.ending)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.running.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		m.cancel()
		<-done
	}
	m.cancel()
	var err error
	m.pending = m.table.collect(m.pending, time.Now()) // After a fault of the journal, or of a Count beside Close.
	if n := len(m.pending); n > 0 {
		m.table.lost.Add(uint64(n))
		m.nameLost()
		err = fmt.Errorf("meter: %d records could not be written to the journal, and are lost: the log names them", n)
	}
	for _, d := range m.deliveries {
		err = errors.Join(err, d.out.Close())
	}
	return errors.Join(err, m.journal.Close())
}

// mostNamed bounds the log lines about lost records. They are written within a second.
const mostNamed = 10_000

// nameLost logs each record in pending, so that an operator can bill it by hand. Beyond mostNamed, it logs sums.
func (m *Meter) nameLost() {
	var rest journal.Record
	for i := range m.pending {
		r := &m.pending[i]
		if i >= mostNamed {
			rest.Admitted = sumOf(rest.Admitted, r.Admitted)
			rest.Metered = sumOf(rest.Metered, r.Metered)
			rest.Refused = sumOf(rest.Refused, r.Refused)
			continue
		}
		m.config.Log.Error("a record of metering is lost", "customer", customerOf(r), "quota", r.Quota, "minute", r.Start(),
			"admitted", r.Admitted, "metered", r.Metered, "refused", r.Refused, "shadow", r.Shadow, "correction", r.Correction)
	}
	if n := len(m.pending) - mostNamed; n > 0 {
		m.config.Log.Error("further records of metering are lost", "records", n,
			"admitted", rest.Admitted, "metered", rest.Metered, "refused", rest.Refused)
	}
}

// Stats are counts since Open.
type Stats struct {
	Journal journal.Stats
	// Others counts the changes that were summed under the others. Lost counts those that were not counted at all, because
	// rows in too many minutes had to wait for a journal that cannot be written, or because they came after Close.
	Others, Lost uint64
	// Waiting are the records in memory that the journal does not have: those of up to a second, and of the time in which the journal
	// cannot be written. The changes of a customer in one minute count as one record.
	Waiting int64
	// Rows are the customers and minutes in memory.
	Rows    int64
	Outputs []OutputStats
}

// OutputStats are those of one output.
type OutputStats struct {
	journal.ReaderStats

	Name string
	// Failures counts attempts. SetAside counts the records that the endpoint does not take, which are kept in a file. Dropped
	// also has those that this file had no capacity for.
	Failures, SetAside uint64
	// Error is the reason of the last failure; "" after a delivery.
	Error string
}

// asider is an Output that sets records aside.
type asider interface {
	SetAside() uint64
	droppedRefused() uint64
}

// Stats gives the counts.
func (m *Meter) Stats() Stats {
	s := Stats{
		Journal: m.journal.Stats(), Others: m.table.others.Load(), Lost: m.table.lost.Load(), Rows: m.table.rows.Load(),
		Waiting: m.waiting.Load() + m.table.uncollected.Load(),
	}
	for _, d := range m.deliveries {
		out := OutputStats{ReaderStats: d.reader.Stats(), Name: d.out.Name()}
		if a, ok := d.out.(asider); ok {
			out.SetAside = a.SetAside()
			out.Dropped += a.droppedRefused()
		}
		d.mu.Lock()
		out.Failures, out.Error = d.failures, d.last
		d.mu.Unlock()
		s.Outputs = append(s.Outputs, out)
	}
	return s
}
