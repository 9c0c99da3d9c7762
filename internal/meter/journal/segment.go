package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// magic begins the first frame of a segment. Another form of the records needs another text.
const magic = "hgj1"

// lockFile is the name of the file whose lock belongs to the process of the journal.
const lockFile = "lock"

const (
	folderMode fs.FileMode = 0o700
	fileMode   fs.FileMode = 0o600
	suffix                 = ".journal"
)

// segment is one file of records. All records of a segment have one epoch. Journal.mu guards the fields that change.
type segment struct {
	number          uint64
	name            string
	instance, epoch string
	first           uint64 // the sequence of the first record
	begin           int64  // the offset of the first record
	size            int64  // the length of the complete records
	records         uint64
}

// segmentName gives the path of a segment.
func segmentName(folder string, number uint64) string {
	return filepath.Join(folder, fmt.Sprintf("%016d%s", number, suffix))
}

// segmentNumbers lists the segments of a folder, the oldest first.
func segmentNumbers(files Files, folder string) ([]uint64, error) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, e := range entries {
		text, ok := strings.CutSuffix(e.Name(), suffix)
		if n, err := strconv.ParseUint(text, 10, 64); ok && err == nil && e.Type().IsRegular() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// head gives the first frame of the segment.
func (s *segment) head() []byte {
	return appendFrame(nil, func(b []byte) []byte {
		b = appendText(append(b, magic...), s.instance, maxInstance)
		return binary.AppendUvarint(appendText(b, s.epoch, maxEpoch), s.first)
	})
}

// errForm is the error of a segment whose first frame is complete and has another magic.
var errForm = errors.New("the file has a form that this version cannot read: start the version that wrote it until its records are " +
	"delivered, or move the file away")

// readHead reads the first frame.
func (s *segment) readHead(payload []byte) error {
	rest, ok := strings.CutPrefix(string(payload), magic)
	if !ok {
		return errForm
	}
	in := fields{rest: []byte(rest)}
	s.instance, s.epoch = in.text(maxInstance), in.text(maxEpoch)
	first, size := binary.Uvarint(in.rest)
	if in.bad || size <= 0 || size != len(in.rest) {
		return errTorn
	}
	s.first = first
	return nil
}

// scanChunk is how much of a segment is read at a time.
const scanChunk = 256 << 10

// scan counts the records of a segment of an earlier run. They end at the first one that is not complete. Their fields are read later,
// by a Reader.
func (s *segment) scan(f io.ReaderAt) error {
	window := newWindow(f, 0, -1)
	payload, err := window.next()
	if err == nil {
		err = s.readHead(payload)
	}
	if err != nil {
		return err
	}
	s.begin, s.size = window.at, window.at
	for {
		if _, err := window.next(); err != nil {
			return window.failed
		}
		s.size = window.at
		s.records++
	}
}

// window reads the frames of a file from an offset up to an end, with one buffer.
type window struct {
	f       io.ReaderAt
	buffer  []byte
	pending []byte // read, and not yet given
	at      int64  // the offset of pending
	read    int64  // the offset behind pending
	end     int64  // -1 is the end of the file
	failed  error
}

func newWindow(f io.ReaderAt, at, end int64) *window {
	return &window{f: f, at: at, read: at, end: end}
}

// next gives the payload of the next frame. It is valid until the next call.
func (w *window) next() ([]byte, error) {
	payload, n, err := frame(w.pending)
	if err != nil && w.fill() {
		payload, n, err = frame(w.pending)
	}
	if err != nil {
		if w.failed != nil {
			return nil, w.failed
		}
		return nil, err
	}
	w.pending = w.pending[n:]
	w.at += int64(n)
	return payload, nil
}

// fill reads more, and reports whether there was more.
func (w *window) fill() bool {
	most := int64(scanChunk - len(w.pending))
	if w.end >= 0 {
		most = min(most, w.end-w.read)
	}
	if most <= 0 || len(w.pending) > maxPayload+frameHead {
		return false
	}
	if w.buffer == nil {
		w.buffer = make([]byte, scanChunk)
	}
	kept := copy(w.buffer, w.pending)
	n, err := w.f.ReadAt(w.buffer[kept:kept+int(most)], w.read)
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed = err
	}
	w.pending = w.buffer[:kept+n]
	w.read += int64(n)
	return n > 0
}

// damagedSuffix marks a segment whose first frame cannot be read. mostDamaged bounds their number: the newest ones stay, to be looked at.
const (
	damagedSuffix = ".damaged"
	mostDamaged   = 4
)

// removeDamaged removes the oldest damaged files beyond their bound. Their names begin with the number.
func (j *Journal) removeDamaged() error {
	entries, err := j.files.ReadDir(j.config.Folder)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix+damagedSuffix) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-mostDamaged)] {
		j.config.Log.Warn("an old damaged file of the journal is removed", "file", name, "kept", mostDamaged)
		err = errors.Join(err, j.files.Remove(filepath.Join(j.config.Folder, name)))
	}
	return err
}

// openSegment opens a segment of an earlier run, and cuts what is behind its complete records. A file without a complete
// head has no records that can be read: openSegment renames it, and gives nil. An empty one is removed.
func openSegment(files Files, folder string, number uint64) (s *segment, torn int64, err error) {
	s = &segment{number: number, name: segmentName(folder, number)}
	f, err := files.OpenFile(s.name, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() //nolint:errcheck // because nothing is lost: Truncate has reported its error.
	info, err := f.Stat()
	if err == nil {
		err = s.scan(f)
	}
	switch {
	case errors.Is(err, errTorn) && info.Size() == 0:
		return nil, 0, files.Remove(s.name)
	case errors.Is(err, errTorn):
		return nil, 0, files.Rename(s.name, s.name+damagedSuffix)
	case err == nil && info.Size() > s.size:
		torn, err = info.Size()-s.size, f.Truncate(s.size)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("journal %s: %w", s.name, err)
	}
	return s, torn, nil
}
