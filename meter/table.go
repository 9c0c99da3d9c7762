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
	"github.com/headgate/headgate/meter/journal"
)

const (
	shardCount = 64
	// idleRounds is the number of collections after which a row without changes is removed: a row stays for its minute, and late decisions
	// find it. sweepRounds is the number between two removals.
	idleRounds  = 60
	sweepRounds = 30
	// rowFactor bounds the rows of all minutes together, as a multiple of the customers of one minute. Rows are used in one minute and
	// stay for at most 90 seconds more, so at most four minutes have rows.
	rowFactor = 4
	// keptMinutes bounds the minutes whose customers are counted. More are seen only while clocks differ.
	keptMinutes = 16
)

// table adds up changes between two collections. The rows of a customer are in one shard.
type table struct {
	seed   maphash.Seed
	shards [shardCount]shard
	most   int // customers of a minute
	rows   atomic.Int64
	others atomic.Uint64
	lost   atomic.Uint64
	budget budget
	round  uint32 // the number of the collection; of the goroutine that collects
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
	round   uint32 // of the last change
}

// cell has what was used of one quota.
type cell struct {
	quota                       string
	shadow, correction, changed bool
	admitted, metered, refused  int64
}

func newTable(most int) *table {
	t := &table{seed: maphash.MakeSeed(), most: most}
	t.budget.minutes = map[int64]int{}
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

// collect appends a record for each change since the last collection. time is that of the records.
func (t *table) collect(dst []journal.Record, now time.Time) []journal.Record {
	t.round++
	for i := range t.shards {
		s := &t.shards[i]
		idle := t.round%sweepRounds == 0
		if !idle && !s.dirty.Load() {
			continue // Most shards of a quiet instance.
		}
		s.mu.Lock()
		dst = s.collect(dst, now.UnixMilli(), t.round)
		if idle {
			t.rows.Add(-int64(s.removeIdle(t.round)))
		}
		s.mu.Unlock()
	}
	return dst
}

func (s *shard) collect(dst []journal.Record, now int64, round uint32) []journal.Record {
	s.dirty.Store(false)
	for _, i := range s.changed {
		r := &s.rows[i]
		r.changed, r.round = false, round
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

// removeIdle removes the rows that have not changed for some time. No row has changed since the collection.
func (s *shard) removeIdle(round uint32) (removed int) {
	kept := s.rows[:0]
	clear(s.index)
	for i := range s.rows {
		r := s.rows[i]
		if round-r.round >= idleRounds {
			removed++
			continue
		}
		s.index[r.rowKey] = uint32(len(kept))
		kept = append(kept, r)
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
	minutes map[int64]int
}

// take takes a place for a customer in a minute.
func (b *budget) take(minute int64, most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, known := b.minutes[minute]
	if n >= most {
		return false
	}
	if !known && len(b.minutes) >= keptMinutes {
		oldest := minute
		for m := range b.minutes {
			oldest = min(oldest, m)
		}
		if oldest == minute {
			return false // The customers of a minute so long ago are not counted any more.
		}
		delete(b.minutes, oldest)
	}
	b.minutes[minute] = n + 1
	return true
}
