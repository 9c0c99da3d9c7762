package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Reader reads the records of a Journal for one output. Read and Ack are called from one goroutine; the other methods are
// safe for concurrent use.
type Reader struct {
	journal *Journal
	name    string
	ready   chan struct{}

	open   File // of the segment number opened, during a Read
	opened uint64
	read   []Record
	ends   []cursor // of read, the place behind each

	// Journal.mu guards the fields below.
	at    cursor // of the first record that is not acknowledged
	since int64  // the time of that record, in milliseconds; 0 if it was not read
	stats ReaderStats
}

// ReaderStats are counts since Open.
type ReaderStats struct {
	// Acknowledged are the delivered records. Dropped are those that the bound of the journal dropped before, and
	// those whose file was removed by others.
	Acknowledged, Dropped uint64
	// Pending are the records that are not acknowledged now, and PendingBytes their bytes. Oldest is the age of the
	// oldest one that the output has tried to deliver; 0 without one.
	Pending      uint64
	PendingBytes int64
	Oldest       time.Duration
}

// cursor is a place between two records. A file keeps that of a reader, without Offset.
type cursor struct {
	Segment uint64 `json:"segment"`
	Index   uint64 `json:"index"`
	Offset  int64  `json:"-"`
}

func newReader(j *Journal, name string) *Reader {
	r := &Reader{journal: j, name: name, ready: make(chan struct{}, 1)}
	r.at = r.load()
	return r
}

// Ready receives a value after records were appended, and is closed with the journal.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

// signal says that there are records. The caller holds Journal.mu.
func (r *Reader) signal() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// path gives the file of the cursor.
func (r *Reader) path() string { return filepath.Join(r.journal.config.Folder, r.name+".cursor") }

// load reads the cursor. Without a valid file the reader begins with the oldest record: a record may be
// delivered twice, and none is left out.
func (r *Reader) load() (at cursor) {
	f, err := r.journal.files.OpenFile(r.path(), os.O_RDONLY, 0)
	if err != nil {
		return at
	}
	defer f.Close() //nolint:errcheck // because it was only read.
	text := make([]byte, 256)
	n, _ := f.ReadAt(text, 0)
	var sum uint32
	var body string
	if _, err := fmt.Sscanf(string(text[:n]), "%08x %s", &sum, &body); err != nil || crc32.ChecksumIEEE([]byte(body)) != sum {
		return at
	}
	if json.Unmarshal([]byte(body), &at) != nil {
		return cursor{}
	}
	return at
}

// save writes the cursor. It is not synced: after a crash of the machine, records may be delivered again.
func (r *Reader) save(at cursor) error {
	body, err := json.Marshal(at)
	if err != nil {
		return err
	}
	files, next := r.journal.files, r.path()+".next"
	f, err := files.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(body), body), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return files.Rename(next, r.path())
}

// behind gives the number of records behind a place. The place can be behind all records of a segment: a crash has cut the last ones,
// which an output has delivered before. The caller holds Journal.mu.
func (s *segment) behind(at cursor) uint64 {
	switch {
	case s.number < at.Segment:
		return 0
	case s.number > at.Segment:
		return s.records
	default:
		return s.records - min(s.records, at.Index)
	}
}

// before reports whether a place is before another one.
func (c cursor) before(other cursor) bool {
	return c.Segment < other.Segment || c.Segment == other.Segment && c.Index < other.Index
}

// drop counts the records of a segment that is dropped. The caller holds Journal.mu.
func (r *Reader) drop(s *segment, reason string) {
	if n := s.behind(r.at); n > 0 {
		r.stats.Dropped += n
		r.since = 0
		r.journal.config.Log.Error("records of the journal are dropped before they were delivered", "reason", reason,
			"output", r.name, "records", n, "max_bytes", r.journal.config.MaxBytes)
	}
	if r.at.Segment <= s.number {
		r.at = cursor{Segment: s.number + 1}
	}
}

// Read gives at most n of the oldest records that are not acknowledged, and none without an error if there are none. They are
// valid until the next Read. A Read without an Ack gives the same records again, and new ones behind them.
func (r *Reader) Read(n int) ([]Record, error) {
	defer r.leave() // A dropped file must not use the disk for as long as an output fails.
	r.read, r.ends = r.read[:0], r.ends[:0]
	for len(r.read) < n {
		before := len(r.read)
		s, from, end, err := r.next()
		if s == nil || err != nil {
			return r.read, err
		}
		err = r.readFrom(s, from, end, n)
		if before > 0 && (err != nil || len(r.read) == before) {
			break // The records of earlier segments come first. The next Read finds the fault again.
		}
		if err != nil {
			return nil, err
		}
		if before == 0 && len(r.read) > 0 {
			r.noteOldest()
		}
	}
	return r.read, nil
}

// noteOldest notes the time of the oldest record, unless the bound has dropped it meanwhile.
func (r *Reader) noteOldest() {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	if r.at.before(r.ends[0]) {
		r.since = r.read[0].Time
	}
}

// next gives the segment to read behind what was read, and from where up to where; nil if there is none.
func (r *Reader) next() (s *segment, from cursor, end int64, err error) {
	j := r.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, from, 0, ErrClosed
	}
	from = r.at
	if n := len(r.ends); n > 0 {
		from = r.ends[n-1]
	}
	for _, s := range j.segments {
		if s.behind(from) == 0 {
			continue
		}
		if s.number > from.Segment {
			from = cursor{Segment: s.number}
		}
		if len(r.ends) == 0 {
			r.at = from
		}
		return s, from, s.size, nil
	}
	return nil, from, 0, nil
}

// readFrom reads records of a segment.
func (r *Reader) readFrom(s *segment, from cursor, end int64, n int) error {
	if err := r.use(s); err != nil || r.open == nil {
		return err
	}
	offset, skip := from.Offset, uint64(0)
	if offset < s.begin { // Only the index is known.
		offset, skip = s.begin, from.Index
	}
	w := newWindow(r.open, offset, end)
	for i := uint64(0); len(r.read) < n && w.at < end; i++ {
		payload, err := w.next()
		var record Record
		if err == nil {
			err = readRecord(payload, &record)
		}
		if errors.Is(err, errTorn) {
			r.lose(s, "the file has changed on the disk")
			return nil
		}
		if err != nil {
			return fmt.Errorf("journal %s: %w", s.name, err)
		}
		if i < skip {
			continue
		}
		record.ID = ID{s.instance, s.epoch, s.first + from.Index + i - skip}
		r.read, r.ends = append(r.read, record), append(r.ends, cursor{s.number, from.Index + i - skip + 1, w.at})
	}
	return nil
}

// lose counts the rest of a segment as lost. Records that this Read has come first: the next Read finds the fault again.
func (r *Reader) lose(s *segment, reason string) {
	if len(r.read) > 0 {
		return
	}
	j := r.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	n := s.behind(r.at)
	r.stats.Dropped += n
	r.at, r.since = cursor{Segment: s.number, Index: s.records, Offset: s.size}, 0
	j.config.Log.Error("undelivered records of a file of the journal are lost", "reason", reason, "file", s.name, "output", r.name,
		"records", n)
}

// use opens the file of a segment.
func (r *Reader) use(s *segment) error {
	if r.open != nil && r.opened == s.number {
		return nil
	}
	r.leave()
	f, err := r.journal.files.OpenFile(s.name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		r.lose(s, "the file was removed")
		return nil
	}
	if err != nil {
		return err
	}
	r.open, r.opened = f, s.number
	return nil
}

func (r *Reader) leave() {
	if r.open != nil {
		_ = r.open.Close() // It was only read.
		r.open = nil
	}
}

// Ack acknowledges the first n records of the last Read: they are delivered. After an error, they are acknowledged until the
// journal is opened again, which then delivers them again.
func (r *Reader) Ack(n int) error {
	if n <= 0 || n > len(r.ends) {
		return nil
	}
	j := r.journal
	j.mu.Lock()
	for _, end := range r.ends[:n] {
		if r.at.before(end) { // Otherwise the bound has dropped the record meanwhile, and counted it.
			r.at, r.since = end, 0
			r.stats.Acknowledged++
		}
	}
	next := r.at
	j.removeRead(1)
	j.mu.Unlock()
	r.ends = r.ends[:0]
	return r.save(next)
}

// Stats gives the counts.
func (r *Reader) Stats() ReaderStats {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	s := r.stats
	for _, segment := range r.journal.segments {
		n := segment.behind(r.at)
		s.Pending += n
		if segment.records > 0 {
			s.PendingBytes += segment.size * int64(n) / int64(segment.records)
		}
	}
	if r.since != 0 && s.Pending > 0 {
		s.Oldest = max(0, time.Since(time.UnixMilli(r.since)))
	}
	return s
}
