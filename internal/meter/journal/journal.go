package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Bounds of a journal, in bytes.
const (
	// MinBytes is the least Config.MaxBytes.
	MinBytes = 1 << 20
	// DefaultMaxBytes bounds a journal without Config.MaxBytes.
	DefaultMaxBytes = 1 << 30
	// A segment has a sixteenth of the journal, and at most 16 MiB, so that the bound drops little at a time.
	segmentParts    = 16
	maxSegmentBytes = 16 << 20
)

// Config configures a Journal.
type Config struct {
	// Folder has the files of the journal. Open makes it. No other process may use it.
	Folder string
	// Instance is the first part of the ids of new records. It has 1 to 128 bytes.
	Instance string
	// MaxBytes bounds the files together. 0 is DefaultMaxBytes.
	MaxBytes int64
	// Readers are the names of the outputs, which become names of files. A record stays until each of them has
	// acknowledged it.
	Readers []string
	// Log gets what is lost and what fails. nil logs nothing.
	Log *slog.Logger
	// Files is the file system; nil is that of the machine. The lock of the folder is always the machine's.
	Files Files
}

// Journal keeps records in files until all readers have acknowledged them. It is safe for concurrent use.
type Journal struct {
	config  Config
	files   Files
	lock    *os.File
	epoch   string
	most    int64 // of a segment
	readers []*Reader

	appending sync.Mutex // held by Append, Sync and Close; before mu
	active    File       // of the last segment; nil before the first record and after a fault. Guarded by appending
	buffer    []byte     // guarded by appending
	unsynced  bool       // active has bytes that were not synced; guarded by appending
	full      []File     // earlier segments that Sync syncs and closes; guarded by appending
	unnamed   bool       // the folder has names that were not synced; guarded by appending

	mu       sync.Mutex
	segments []*segment // the oldest first; never empty of those with records that a reader needs
	next     uint64     // the sequence of the next record
	total    int64      // bytes of segments
	stats    Stats
	writing  trouble // of Append
	syncing  trouble // of Sync
	closed   bool    // written with appending and mu
}

// Stats are counts since Open.
type Stats struct {
	// Epoch is the second part of the ids of new records.
	Epoch string
	// Bytes and Segments are those of the files now.
	Bytes    int64
	Segments int
	// Written are the appended records. Faults counts the failed attempts to write or sync.
	Written, Faults uint64
	// Error is the reason why the last attempt to write or sync failed; "" after a success.
	Error string
	// Torn are the bytes that Open cut from files of earlier runs, because a crash had left them incomplete.
	Torn int64
}

// ErrClosed is the error of a closed Journal.
var ErrClosed = errors.New("journal: it is closed")

// Open opens the journal of a folder, and begins an epoch. It cuts the incomplete ends of files, which a crash leaves,
// and logs them. Reading the files takes about a second for each GiB.
func Open(c Config) (*Journal, error) {
	if c.Instance == "" || len(c.Instance) > maxInstance {
		return nil, fmt.Errorf("journal: the name of the instance has %d bytes: use 1 to %d", len(c.Instance), maxInstance)
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.MaxBytes < MinBytes {
		return nil, fmt.Errorf("journal: MaxBytes is %d: give it at least %d", c.MaxBytes, MinBytes)
	}
	if c.Files == nil {
		c.Files = Machine()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	j := &Journal{config: c, files: c.Files, most: min(c.MaxBytes/segmentParts, maxSegmentBytes)}
	j.epoch = newEpoch(time.Now())
	j.stats.Epoch = j.epoch
	if err := j.open(); err != nil {
		if j.lock != nil {
			_ = j.lock.Close()
		}
		return nil, err
	}
	return j, nil
}

// newEpoch gives the name of an epoch: its start for people, and 64 random bits, so that no other epoch of any instance
// has the name, whatever the clock says.
func newEpoch(now time.Time) string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // It never fails.
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random[:])
}

func (j *Journal) open() (err error) {
	c := &j.config
	if err := j.files.MkdirAll(c.Folder, folderMode); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if j.lock, err = lock(c.Folder); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	for _, name := range c.Readers {
		j.readers = append(j.readers, newReader(j, name))
	}
	numbers, err := segmentNumbers(j.files, c.Folder)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	for _, n := range numbers {
		if err := j.openOld(n); err != nil {
			return err
		}
	}
	if err := j.removeDamaged(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.countGaps()
	j.makeRoom(0)
	j.removeRead(0)
	return nil
}

// openOld opens a segment of an earlier run.
func (j *Journal) openOld(number uint64) error {
	s, torn, err := openSegment(j.files, j.config.Folder, number)
	switch {
	case err != nil:
		return err
	case s == nil:
		j.config.Log.Warn("a file of the journal has no record that can be read, and is renamed to end in "+damagedSuffix,
			"file", segmentName(j.config.Folder, number))
		return nil
	case torn > 0:
		j.stats.Torn += torn
		j.config.Log.Warn("the journal was not closed: its last records are incomplete, and are cut",
			"file", s.name, "bytes", torn, "records_kept", s.records)
	}
	j.segments = append(j.segments, s)
	j.total += s.size
	return nil
}

// countGaps counts the records that are missing between two segments of one epoch: an earlier file has changed on the disk. The sequences
// say how many. At the end of an epoch, a crash can have left the last records incomplete, which is no fault of the disk.
func (j *Journal) countGaps() {
	for i := 1; i < len(j.segments); i++ {
		s, next := j.segments[i-1], j.segments[i]
		if s.instance != next.instance || s.epoch != next.epoch || next.first <= s.first+s.records {
			continue
		}
		n := next.first - s.first - s.records
		j.config.Log.Error("a file of the journal has changed on the disk, and its last records are lost", "file", s.name, "records", n)
		for _, r := range j.readers {
			if r.at.Segment >= next.number {
				continue
			}
			r.stats.Dropped += n
			if r.at.Segment == s.number && r.at.Index > s.records {
				r.stats.Dropped -= min(n, r.at.Index-s.records) // They were delivered before.
			}
		}
	}
}

// Epoch gives the second part of the ids of new records.
func (j *Journal) Epoch() string { return j.epoch }

// Reader gives the reader of a name of Config.Readers; nil for another name.
func (j *Journal) Reader(name string) *Reader {
	for _, r := range j.readers {
		if r.name == name {
			return r
		}
	}
	return nil
}

// Append writes records, sets their IDs, and lets readers see them. With sync, it syncs the file before. It gives the number of
// written records. After an error, the caller calls Append again with the same further records, so that no id
// is ever used for another record.
func (j *Journal) Append(records []Record, sync bool) (written int, err error) {
	j.appending.Lock()
	defer j.appending.Unlock()
	if j.closed {
		return 0, ErrClosed
	}
	for written < len(records) {
		n, err := j.appendSome(records[written:], sync)
		if err != nil {
			j.fault(&j.writing, err)
			return written, err
		}
		written += n
	}
	if written > 0 {
		j.mended(&j.writing)
	}
	return written, nil
}

// appendSome writes as many records as one segment takes.
func (j *Journal) appendSome(records []Record, sync bool) (int, error) {
	if err := j.ready(sync); err != nil {
		return 0, err
	}
	s := j.last()
	n, room := 0, j.most-s.size
	j.buffer = j.buffer[:0]
	for ; n < len(records) && (n == 0 || int64(len(j.buffer)) < room); n++ {
		records[n].ID = ID{s.instance, s.epoch, s.first + s.records + uint64(n)}
		j.buffer = appendRecord(j.buffer, &records[n])
	}
	if _, err := j.active.WriteAt(j.buffer, s.size); err != nil {
		_ = j.active.Truncate(s.size) // If this fails too, the next attempt writes the same records over it.
		return 0, err
	}
	if j.unsynced = true; sync {
		if err := j.active.Sync(); err != nil {
			_ = j.active.Truncate(s.size)
			j.leave() // What the file has after a failed sync is unknown.
			return 0, err
		}
		j.unsynced = false
	}
	j.publish(s, n, int64(len(j.buffer)))
	return n, nil
}

// ready makes a segment to append to, if the present one is full or gone.
func (j *Journal) ready(sync bool) error {
	if j.active != nil {
		s := j.last()
		info, err := j.files.Stat(s.name)
		switch {
		case err == nil && sameFile(info, j.active):
		case err == nil || errors.Is(err, fs.ErrNotExist):
			j.config.Log.Error("a file of the journal was removed or replaced while it was in use: undelivered records in it are lost",
				"file", s.name)
			j.leave()
		default:
			return err
		}
		if j.active != nil && s.size < j.most {
			return nil
		}
	}
	return j.begin(sync)
}

func sameFile(info fs.FileInfo, open File) bool {
	mine, err := open.Stat()
	return err == nil && os.SameFile(info, mine)
}

// leave closes the present file, so that the next record begins another.
func (j *Journal) leave() {
	if j.active != nil {
		_ = j.active.Close() // Its Sync has reported the faults.
		j.active = nil
	}
}

// begin makes the next segment. With sync, it syncs the name of the file; otherwise Sync does.
func (j *Journal) begin(sync bool) error {
	if err := j.retire(); err != nil {
		return err
	}
	if err := j.makeFolder(); err != nil {
		return err
	}
	s := &segment{instance: j.config.Instance, epoch: j.epoch}
	j.mu.Lock()
	s.first = j.next
	s.number = 1
	if n := len(j.segments); n > 0 {
		s.number = j.segments[n-1].number + 1
	}
	for _, r := range j.readers {
		s.number = max(s.number, r.at.Segment+1)
	}
	j.mu.Unlock()
	head := s.head()
	s.begin, s.size = int64(len(head)), int64(len(head))
	f, err := j.create(s)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(head, 0)
	if err == nil && sync {
		err = syncFolder(j.files, j.config.Folder) // A crash of the machine must not lose the file itself.
	}
	if err != nil {
		return errors.Join(err, f.Close(), j.files.Remove(s.name))
	}
	j.active, j.unnamed = f, j.unnamed || !sync
	j.mu.Lock()
	defer j.mu.Unlock()
	j.segments = append(j.segments, s)
	j.total += s.size
	j.removeRead(1)
	return nil
}

// last gives the newest segment. The caller holds appending, so that there is no newer one.
func (j *Journal) last() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[len(j.segments)-1]
}

// publish lets readers see records, and drops the oldest ones beyond the bound.
func (j *Journal) publish(s *segment, n int, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.records += uint64(n)
	s.size += size
	j.next = s.first + s.records
	j.total += size
	j.stats.Written += uint64(n)
	j.makeRoom(1)
	for _, r := range j.readers {
		r.signal()
	}
}

// makeRoom drops the oldest segments beyond the bound, and keeps the last ones. The caller holds mu.
func (j *Journal) makeRoom(keep int) {
	for j.total > j.config.MaxBytes-j.most && len(j.segments) > keep {
		s := j.segments[0]
		for _, r := range j.readers {
			r.drop(s, "the journal is full")
		}
		j.remove()
	}
}

// removeRead removes the oldest segments that all readers have acknowledged, and keeps the last ones. Without readers,
// the records stay up to the bound. The caller holds mu.
func (j *Journal) removeRead(keep int) {
	for len(j.segments) > keep && len(j.readers) > 0 {
		for _, r := range j.readers {
			if j.segments[0].behind(r.at) > 0 {
				return
			}
		}
		j.remove()
	}
}

// remove removes the oldest segment. The caller holds mu.
func (j *Journal) remove() {
	s := j.segments[0]
	j.segments = j.segments[1:]
	j.total -= s.size
	if err := j.files.Remove(s.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.config.Log.Error("a file of the journal cannot be removed: remove it by hand", "file", s.name, "error", err)
	}
}

// Stats gives the counts.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	for _, t := range [...]*trouble{&j.syncing, &j.writing} {
		if t.last != nil {
			s.Error = t.last.Error()
		}
	}
	s.Bytes, s.Segments = j.total, len(j.segments)
	return s
}

// Close syncs and closes the files. Readers get ErrClosed.
func (j *Journal) Close() error {
	err := j.Sync()
	j.appending.Lock()
	defer j.appending.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	j.leave()
	for _, f := range j.full {
		_ = f.Close() // A full file came after Sync, and only the caller's later records are in doubt.
	}
	for _, r := range j.readers {
		close(r.ready)
	}
	return errors.Join(err, j.lock.Close())
}
