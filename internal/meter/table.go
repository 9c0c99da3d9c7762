package meter

import (
	"hash/maphash"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/meter/journal"
)

const (
	shardCount = 64
	// idleSeconds is the time after which a row without changes is removed: a customer keeps its row for its minute, and late decisions
	// find it. sweepSeconds is the time between two removals. More than idleSeconds have passed, because both times are cut to seconds.
	idleSeconds  = 60
	sweepSeconds = 15
	// rowFactor bounds the rows of all minutes together, as a multiple of the customers of one minute. Rows are used in one minute and
	// stay for at most 80 seconds more, so at most four minutes have rows.
	rowFactor = 4
	// keptMinutes bounds the minutes whose customers are counted. More are seen only while clocks differ.
	keptMinutes = 16
)

// table adds up changes between two collections. The rows of a customer are in one shard.
type table struct {
	seed        maphash.Seed
	shards      [shardCount]shard
	most        int // customers of a minute
	rows        atomic.Int64
	uncollected atomic.Int64 // rows with changes that were not collected
	others      atomic.Uint64
	lost        atomic.Uint64
	budget      budget

	// The goroutine that collects has these. swept is the second of the last removal.
	begun time.Time // of the first collection
	swept int32
}

type shard struct {
	mu      sync.Mutex
	index   map[rowKey]uint32 // of rows
	rows    []row
	changed []uint32
	dirty   atomic.Bool // changed is not empty
	_       [64]byte    // Another shard's lock is on another cache line.
}

type rowKey struct {
	minute int64
	name   string
	others bool
}

// row has what one customer used in one minute.
type row struct {
	rowKey

	cells   []cell
	changed bool
	second  int32 // of the last collected change, since table.begun
}

// cell has what was used of one quota.
type cell struct {
	quota                       string
	shadow, correction, changed bool
	admitted, metered, refused  int64
}

func newTable(most int) *table {
	t := &table{seed: maphash.MakeSeed(), most: most}
	t.budget.minutes = map[int64]minuteBudget{}
	for i := range t.shards {
		t.shards[i].index = map[rowKey]uint32{}
	}
	return t
}

// add adds a change, and reports whether it belongs to the others now.
func (t *table) add(u *headgate.Usage) (others bool) {
	key := rowKey{minute: minuteOf(u.At), name: u.Customer, others: u.Others}
	s := &t.shards[maphash.String(t.seed, u.Customer)%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Others {
		key.name = ""
	}
	i, known := s.index[key]
	if !known {
		// A correction never moves to the others: its customer has the decision that it corrects.
		if !u.Others && !u.Correction && !t.admits(key.minute) {
			key.name, key.others = "", true
			i, known = s.index[key]
		}
		if !known {
			if i, known = t.addRow(s, key); !known {
				return key.others
			}
		}
	}
	if key.others {
		t.others.Add(1)
	}
	s.rows[i].add(u)
	if r := &s.rows[i]; !r.changed {
		r.changed = true
		s.changed = append(s.changed, i)
		s.dirty.Store(true)
		t.uncollected.Add(1)
	}
	return key.others
}

// minuteOf gives the minute of a time, since the Unix epoch.
func minuteOf(at headgate.Instant) int64 {
	m := int64(at) / int64(time.Minute)
	if int64(at)%int64(time.Minute) < 0 {
		m--
	}
	return m
}

// admits reports whether another customer can have a row in a minute.
func (t *table) admits(minute int64) bool {
	return t.rows.Load() < int64(rowFactor*t.most) && t.budget.take(minute, t.most)
}

// addRow makes a row. It reports false if there are far too many: then a broken clock has made rows in many minutes.
func (t *table) addRow(s *shard, key rowKey) (uint32, bool) {
	if t.rows.Load() >= int64(2*rowFactor*t.most) {
		t.lost.Add(1)
		return 0, false
	}
	t.rows.Add(1)
	key.name = strings.Clone(key.name) // The caller uses its memory again.
	i := uint32(len(s.rows))
	s.rows = append(s.rows, row{rowKey: key})
	s.index[key] = i
	return i, true
}

// add adds a change to the row.
func (r *row) add(u *headgate.Usage) {
	c := r.cell(u)
	c.changed = true
	c.admitted = sumOf(c.admitted, u.Admitted)
	c.metered = sumOf(c.metered, u.Metered)
	c.refused = sumOf(c.refused, u.Refused)
}

// sumOf adds two numbers. A sum that does not fit is the nearest number that fits: clients choose costs of up to 2^53-1.
func sumOf(a, b int64) int64 {
	switch sum := a + b; {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

func (r *row) cell(u *headgate.Usage) *cell {
	for i := range r.cells {
		if c := &r.cells[i]; c.quota == u.Quota && c.shadow == u.Shadow && c.correction == u.Correction {
			return c
		}
	}
	r.cells = append(r.cells, cell{quota: strings.Clone(u.Quota), shadow: u.Shadow, correction: u.Correction})
	return &r.cells[len(r.cells)-1]
}

// second gives the time since the first collection. A difference of two seconds is right for 68 years.
func (t *table) second(now time.Time) int32 {
	if t.begun.IsZero() {
		t.begun = now
	}
	return int32(now.Sub(t.begun) / time.Second)
}

// collect appends a record for each change since the last collection. time is that of the records.
func (t *table) collect(dst []journal.Record, now time.Time) []journal.Record {
	second := t.second(now)
	for i := range t.shards {
		s := &t.shards[i]
		if !s.dirty.Load() {
			continue // Most shards of a quiet instance.
		}
		s.mu.Lock()
		t.uncollected.Add(-int64(len(s.changed)))
		dst = s.collect(dst, now.UnixMilli(), second)
		s.mu.Unlock()
	}
	t.sweep(now)
	return dst
}

// sweep removes the rows that have not changed for some time. It is called while records wait, too: the rows of new minutes need the
// place.
func (t *table) sweep(now time.Time) {
	second := t.second(now)
	if second-t.swept < sweepSeconds {
		return
	}
	t.swept = second
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		t.rows.Add(-int64(s.removeIdle(second)))
		s.mu.Unlock()
	}
}

func (s *shard) collect(dst []journal.Record, now int64, second int32) []journal.Record {
	s.dirty.Store(false)
	for _, i := range s.changed {
		r := &s.rows[i]
		r.changed, r.second = false, second
		for j := range r.cells {
			c := &r.cells[j]
			if c.changed && c.admitted|c.metered|c.refused != 0 {
				dst = append(dst, journal.Record{
					Time: now, Minute: r.minute, Customer: r.name, Others: r.others, Quota: c.quota, Shadow: c.shadow,
					Correction: c.correction, Admitted: c.admitted, Metered: c.metered, Refused: c.refused,
				})
			}
			c.changed, c.admitted, c.metered, c.refused = false, 0, 0, 0
		}
	}
	s.changed = s.changed[:0]
	return dst
}

// removeIdle removes the rows that have not changed for some time. Rows with changes that were not collected stay.
func (s *shard) removeIdle(second int32) (removed int) {
	kept := s.rows[:0]
	clear(s.index)
	s.changed = s.changed[:0]
	for i := range s.rows {
		r := s.rows[i]
		if !r.changed && second-r.second > idleSeconds {
			removed++
			continue
		}
		at := uint32(len(kept))
		s.index[r.rowKey] = at
		if kept = append(kept, r); r.changed {
			s.changed = append(s.changed, at)
		}
	}
	clear(s.rows[len(kept):])
	s.rows = kept
	const spare = 4
	if cap(s.rows) > spare*(len(s.rows)+shardCount) { // After a busy minute, the memory is for others.
		s.rows = append(make([]row, 0, 2*len(kept)), kept...)
		index := make(map[rowKey]uint32, len(s.index))
		maps.Copy(index, s.index)
		s.index = index
	}
	return removed
}

// budget counts the customers of each minute.
type budget struct {
	mu      sync.Mutex
	minutes map[int64]minuteBudget
	takes   uint64
}

// minuteBudget has the number of customers, and when the last one came: the number of its take.
type minuteBudget struct {
	customers int
	last      uint64
}

// take takes a place for a customer in a minute. Beyond keptMinutes, the minute that was used least recently is forgotten, and not the
// oldest one: after a clock was set back, the present minute is older than all others.
func (b *budget) take(minute int64, most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	budget, known := b.minutes[minute]
	if budget.customers >= most {
		return false
	}
	if !known && len(b.minutes) >= keptMinutes {
		b.forget()
	}
	b.takes++
	b.minutes[minute] = minuteBudget{budget.customers + 1, b.takes}
	return true
}

// forget forgets the minute that was used least recently.
func (b *budget) forget() {
	unused, last := int64(0), b.takes+1
	for minute, budget := range b.minutes {
		if budget.last < last {
			unused, last = minute, budget.last
		}
	}
	delete(b.minutes, unused)
}
