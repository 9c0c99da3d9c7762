package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// opened opens the journal of a folder with the readers a and b.
func opened(tb testing.TB, folder string, change ...func(*Config)) *Journal {
	tb.Helper()
	c := Config{Folder: folder, Instance: "i", MaxBytes: MinBytes, Readers: []string{"a", "b"}}
	for _, f := range change {
		f(&c)
	}
	j, err := Open(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = j.Close() })
	return j
}

// records makes n records, which differ in their numbers from the first one on.
func records(first, n int) []Record {
	all := make([]Record, n)
	for i := range all {
		all[i] = Record{Time: 1, Minute: 2, Customer: fmt.Sprintf("customer-%d", first+i), Quota: "calls", Admitted: int64(first + i)}
	}
	return all
}

func add(tb testing.TB, j *Journal, all []Record) {
	tb.Helper()
	if n, err := j.Append(all, false); n != len(all) || err != nil {
		tb.Fatalf("Append wrote %d of %d: %v", n, len(all), err)
	}
}

// read reads all that a reader gets, acknowledges it, and gives the numbers.
func read(tb testing.TB, r *Reader, ack bool) (numbers []int64) {
	tb.Helper()
	for {
		all, err := r.Read(100)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range all {
			numbers = append(numbers, all[i].Admitted)
		}
		if len(all) == 0 || !ack {
			return numbers
		}
		if err := r.Ack(len(all)); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestStory(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "journal")
	j := opened(t, folder)
	step := func(what string, r *Reader, ack bool, want ...int64) {
		t.Helper()
		if got := read(t, r, ack); !slices.Equal(got, want) {
			t.Errorf("%s: got the records %v, want %v", what, got, want)
		}
	}
	step("an empty journal", j.Reader("a"), true)
	add(t, j, records(1, 3))
	step("without an Ack", j.Reader("a"), false, 1, 2, 3)
	step("again", j.Reader("a"), true, 1, 2, 3)
	add(t, j, records(4, 1))
	if j.Reader("a").open != nil {
		t.Error("a reader keeps a file open")
	}
	step("only the new one", j.Reader("a"), true, 4)
	if s := j.Reader("b").Stats(); s.Pending != 4 || s.PendingBytes <= 0 || s.Oldest != 0 {
		t.Errorf("the slow reader has %+v, want 4 pending records", s)
	}
	if got, err := j.Reader("b").Read(2); err != nil || len(got) != 2 || j.Reader("b").Ack(1) != nil {
		t.Errorf("a batch of two: %d, %v", len(got), err)
	}
	first := j.Epoch()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(records(9, 1), false); err != ErrClosed { //nolint:errorlint // It is not wrapped.
		t.Errorf("Append after Close: %v", err)
	}
	j = opened(t, folder, func(c *Config) { c.Instance = "renamed" })
	add(t, j, records(5, 1))
	got, err := j.Reader("b").Read(9)
	if err != nil || len(got) != 4 || got[3].Epoch == first || got[0].ID != (ID{"i", first, 1}) || got[0].ID.String() != "i/"+first+"/1" {
		t.Fatalf("after a restart: got %+v, %v, want three records of the first epoch, and the new one", got, err)
	}
	step("the slow reader", j.Reader("b"), true, 2, 3, 4, 5)
	step("the fast reader", j.Reader("a"), true, 5)
	if files, _ := segmentNumbers(Machine(), folder); len(files) != 1 {
		t.Errorf("delivered segments stay: %v", files)
	}
	for name, want := range map[string]os.FileMode{"": 0o700 | os.ModeDir, "a.cursor": 0o600, fmt.Sprintf("%016d.journal", 2): 0o600} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode() != want {
			t.Errorf("%q has the mode %v (%v), want %v", name, info.Mode(), err, want)
		}
	}
}

func TestOneProcess(t *testing.T) {
	folder := t.TempDir()
	opened(t, folder)
	if _, err := Open(Config{Folder: folder, Instance: "other"}); err == nil || !strings.Contains(err.Error(), "a folder of its own") {
		t.Errorf("the second journal of a folder: %v", err)
	}
}

// TestBound: beyond the bound the oldest records are dropped, and each reader counts its own.
func TestBound(t *testing.T) {
	folder := t.TempDir()
	j := opened(t, folder)
	written := 0
	for written < 60_000 {
		add(t, j, records(written, 1000))
		written += 1000
		if written <= 20_000 {
			read(t, j.Reader("a"), true)
		}
		if size := j.Stats().Bytes; size > MinBytes {
			t.Fatalf("the journal has %d bytes, want at most %d", size, MinBytes)
		}
	}
	for name, read := range map[string]uint64{"a": 20_000, "b": 0} {
		s := j.Reader(name).Stats()
		if s.Acknowledged != read || s.Dropped == 0 || s.Acknowledged+s.Dropped+s.Pending != uint64(written) {
			t.Errorf("reader %s: %+v, want a sum of %d", name, s, written)
		}
	}
	got := read(t, j.Reader("b"), true)
	if dropped := j.Reader("b").Stats().Dropped; got[0] != int64(dropped) || got[len(got)-1] != int64(written-1) {
		t.Errorf("after %d dropped records, the records are %d to %d", dropped, got[0], got[len(got)-1])
	}
	files, _ := os.ReadDir(folder)
	var size int64
	for _, f := range files {
		info, _ := f.Info()
		size += info.Size()
	}
	if size > MinBytes+4096 {
		t.Errorf("the folder has %d bytes", size)
	}
}

// crash ends a journal without any of the steps of Close, as a kill does.
func (j *Journal) crash() {
	j.leave()
	_ = j.syncFull(j.full)
	for _, r := range j.readers {
		r.leave()
	}
	_ = j.lock.Close()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
}

// TestCrashes: random appends and reads, crashes at any byte, and a slow twin that keeps all records.
func TestCrashes(t *testing.T) {
	for seed := range uint64(25) {
		crashRun(t, rand.New(rand.NewPCG(seed, 7)))
	}
}

type crashTwin struct {
	records map[ID]Record
	kept    []ID // in the journal, in order
	acked   int  // of kept
}

func crashRun(t *testing.T, r *rand.Rand) {
	t.Helper()
	folder := t.TempDir()
	twin := crashTwin{records: map[ID]Record{}}
	one := func(c *Config) { c.Readers = []string{"a"} }
	j := opened(t, folder, one)
	made := 0
	for range 30 {
		switch r.IntN(4) {
		case 0, 1:
			all := records(made, r.IntN(400))
			made += len(all)
			add(t, j, all)
			for i := range all {
				if _, used := twin.records[all[i].ID]; used {
					t.Fatalf("the id %v is used twice", all[i].ID)
				}
				twin.records[all[i].ID] = all[i]
				twin.kept = append(twin.kept, all[i].ID)
			}
		case 2:
			twin.read(t, r, j)
		default:
			j.crash()
			cut := twin.cut(t, r, folder)
			j = opened(t, folder, one)
			twin.kept = twin.kept[:len(twin.kept)-cut]
			twin.acked = min(twin.acked, len(twin.kept))
		}
	}
	for twin.acked < len(twin.kept) {
		twin.read(t, r, j)
	}
	j.crash()
}

// read compares what is read with the twin, and acknowledges some.
func (c *crashTwin) read(t *testing.T, r *rand.Rand, j *Journal) {
	t.Helper()
	got, err := j.Reader("a").Read(1 + r.IntN(300))
	if err != nil || len(got) == 0 && c.acked < len(c.kept) {
		t.Fatalf("read %d, %v, with %d records left", len(got), err, len(c.kept)-c.acked)
	}
	for i := range got {
		if id := c.kept[c.acked+i]; got[i] != c.records[id] {
			t.Fatalf("record %d is %+v, want %+v", c.acked+i, got[i], c.records[id])
		}
	}
	n := r.IntN(len(got) + 1)
	if err := j.Reader("a").Ack(n); err != nil {
		t.Fatal(err)
	}
	c.acked += n
}

// cut cuts the newest segment at any byte, or adds garbage to it, and gives the number of lost records.
func (c *crashTwin) cut(t *testing.T, r *rand.Rand, folder string) (lost int) {
	t.Helper()
	numbers, err := segmentNumbers(Machine(), folder)
	if err != nil || len(numbers) == 0 {
		return 0
	}
	name := segmentName(folder, numbers[len(numbers)-1])
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	from := r.IntN(len(text) + 1)
	before, after := framesIn(text), framesIn(text[:from])
	garbage := make([]byte, r.IntN(20))
	for i := range garbage {
		garbage[i] = byte(r.Uint32())
	}
	if r.IntN(2) == 0 {
		clear(garbage) // A file system may leave zeros.
	}
	if err := os.WriteFile(name, append(text[:from], garbage...), 0o600); err != nil {
		t.Fatal(err)
	}
	return max(0, before-1) - max(0, after-1) // Without the head.
}

// framesIn is the slow twin of scan.
func framesIn(text []byte) (n int) {
	for {
		_, size, err := frame(text)
		if err != nil {
			return n
		}
		text = text[size:]
		n++
	}
}

// TestTornOnce: an incomplete end is cut, so that the next start does not find it again.
func TestTornOnce(t *testing.T) {
	folder := t.TempDir()
	j := opened(t, folder)
	add(t, j, records(1, 2))
	j.crash()
	name := segmentName(folder, 1)
	text, err := os.ReadFile(name)
	if err != nil || os.WriteFile(name, append(text, "torn"...), 0o600) != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{4, 0} {
		j := opened(t, folder)
		if got := j.Stats().Torn; got != want {
			t.Errorf("%d bytes are cut, want %d", got, want)
		}
		j.crash()
	}
}

// TestRemovedFolder: the folder is deleted while the journal is in use. It goes on in a new one, and says what was lost.
func TestRemovedFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "j")
	j := opened(t, folder)
	add(t, j, records(1, 3))
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	add(t, j, records(4, 2))
	for _, name := range []string{"a", "b"} {
		if got := read(t, j.Reader(name), true); !slices.Equal(got, []int64{4, 5}) || j.Reader(name).Stats().Dropped != 3 {
			t.Errorf("reader %s: got %v and %+v, want 4, 5 and 3 dropped", name, got, j.Reader(name).Stats())
		}
	}
	if _, err := Open(Config{Folder: folder, Instance: "other"}); err == nil {
		t.Error("the new folder has no lock")
	}
}

// TestBatchOfSegments: a batch goes on in later segments, also of later epochs, and a record behind it stays.
func TestBatchOfSegments(t *testing.T) {
	folder := t.TempDir()
	for i := range 3 {
		j := opened(t, folder)
		add(t, j, records(2*i+1, 2))
		j.crash()
	}
	j := opened(t, folder)
	r := j.Reader("a")
	got, err := r.Read(5)
	if err != nil || len(got) != 5 || got[4].Admitted != 5 || got[2].Sequence != 0 || got[3].Sequence != 1 {
		t.Fatalf("a batch has %+v, %v, want the records 1 to 5", got, err)
	}
	if err := r.Ack(3); err != nil {
		t.Fatal(err)
	}
	if got := read(t, r, true); !slices.Equal(got, []int64{4, 5, 6}) || r.Stats().Acknowledged != 6 {
		t.Errorf("then %v, and %d are acknowledged", got, r.Stats().Acknowledged)
	}
	r = j.Reader("b")
	if err := os.Remove(segmentName(folder, 2)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, r, true); !slices.Equal(got, []int64{1, 2, 5, 6}) || r.Stats().Dropped != 2 || r.Stats().Acknowledged != 4 {
		t.Errorf("without the second segment: %v, %+v", got, r.Stats())
	}
}

// TestTakenFolder: the folder is removed, and another process begins a journal in it. The first one stops to write, and leaves the files of
// the other one alone, until it has ended.
func TestTakenFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "j")
	first := opened(t, folder)
	add(t, first, records(1, 3))
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	second := opened(t, folder)
	for len(second.segments) < 3 {
		add(t, second, records(10, 1000))
	}
	if _, err := first.Append(records(4, 2), false); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("the first journal writes into the folder of the second one: %v", err)
	}
	second.crash()
	add(t, first, records(4, 2)) // The number of its next file is one of the second journal's.
	if got := read(t, first.Reader("a"), true); !slices.Equal(got, []int64{4, 5}) || first.Reader("a").Stats().Dropped != 3 {
		t.Errorf("the first journal has %v and %+v, want 4, 5 and 3 dropped", got, first.Reader("a").Stats())
	}
	for _, s := range second.segments {
		if info, err := os.Stat(s.name); err != nil || info.Size() != s.size {
			t.Errorf("a file of the second journal was changed: %v", err)
		}
	}
}

// TestDamage: a byte of a segment changes on the disk while the journal is in use. The rest of the segment is lost and counted.
func TestDamage(t *testing.T) {
	folder := t.TempDir()
	j := opened(t, folder)
	add(t, j, records(1, 10))
	name := segmentName(folder, 1)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := f.Stat()
	_, _ = f.WriteAt([]byte{0xff}, info.Size()/2)
	_ = f.Close()
	got := read(t, j.Reader("a"), true)
	if s := j.Reader("a").Stats(); len(got) == 0 || len(got) == 10 || s.Dropped != uint64(10-len(got)) {
		t.Errorf("got %v and %+v", got, s)
	}
	add(t, j, records(11, 1))
	if got := read(t, j.Reader("a"), true); !slices.Equal(got, []int64{11}) {
		t.Errorf("after the damage: %v", got)
	}
}

// TestDamageBeforeTheStart: a byte of an old segment changes while the journal is closed. Each reader counts the lost
// records that it has not acknowledged.
func TestDamageBeforeTheStart(t *testing.T) {
	folder := t.TempDir()
	j := opened(t, folder)
	const written = 4000
	for i := 0; i < written; i += 100 { // Two segments and more.
		add(t, j, records(i, 100))
	}
	first := j.segments[0]
	if len(j.segments) < 2 || int(first.records) < 500 {
		t.Fatalf("%d segments, the first with %d records", len(j.segments), first.records)
	}
	if got, err := j.Reader("b").Read(int(first.records) - 5); err != nil || j.Reader("b").Ack(len(got)) != nil {
		t.Fatal(err)
	}
	j.crash()
	damage(t, first.name, first.size/2)
	j = opened(t, folder)
	got := read(t, j.Reader("a"), true)
	if lost := j.Reader("a").Stats().Dropped; lost == 0 || len(got)+int(lost) != written {
		t.Errorf("reader a got %d and lost %d, want a sum of %d", len(got), lost, written)
	}
	if lost := j.Reader("b").Stats().Dropped; lost != 5 {
		t.Errorf("reader b lost %d, want the 5 that it had not acknowledged", lost)
	}
}

// TestUnknownFields: the checksum of a record is right, and its fields are those of another version. A start does not cut the record,
// and readers count it and those behind it.
func TestUnknownFields(t *testing.T) {
	folder := t.TempDir()
	s := segment{instance: "i", epoch: "e"}
	all := records(1, 3)
	text := appendRecord(s.head(), &all[0])
	text = appendFrame(text, func(b []byte) []byte { return append(b, 0xff) })
	text = appendRecord(text, &all[2])
	name := segmentName(folder, 1)
	if err := os.WriteFile(name, text, fileMode); err != nil {
		t.Fatal(err)
	}
	j := opened(t, folder)
	if kept, err := os.ReadFile(name); err != nil || !bytes.Equal(kept, text) || j.Stats().Torn != 0 {
		t.Errorf("the start has cut %d bytes of the file: %v", len(text)-len(kept), err)
	}
	if got := read(t, j.Reader("a"), true); !slices.Equal(got, []int64{1}) || j.Reader("a").Stats().Dropped != 2 {
		t.Errorf("read %v and %+v, want the first record and 2 dropped", got, j.Reader("a").Stats())
	}
}

// TestDamagedFilesAreBounded: files without a readable head stay under another name, the newest four of them.
func TestDamagedFilesAreBounded(t *testing.T) {
	folder := t.TempDir()
	for n := range uint64(7) {
		if err := os.WriteFile(segmentName(folder, n+1), []byte("no head"), fileMode); err != nil {
			t.Fatal(err)
		}
	}
	opened(t, folder)
	for n := range uint64(7) {
		if _, err := os.Stat(segmentName(folder, n+1) + damagedSuffix); (err == nil) != (n >= 3) {
			t.Errorf("damaged file %d: %v", n+1, err)
		}
	}
}

func damage(t *testing.T, name string, at int64) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text[at] ^= 0xff
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUnknownForm: a segment of another version stops the start, and stays. One whose head is damaged is renamed.
func TestUnknownForm(t *testing.T) {
	folder := t.TempDir()
	name := segmentName(folder, 1)
	text := appendFrame(nil, func(b []byte) []byte { return append(b, "hgj2 and more"...) })
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Folder: folder, Instance: "i"}); err == nil || !strings.Contains(err.Error(), "cannot read") {
		t.Errorf("with a file of another form: %v", err)
	}
	if kept, err := os.ReadFile(name); err != nil || !bytes.Equal(kept, text) {
		t.Errorf("the file has %q, %v", kept, err)
	}
	damage(t, name, 3)
	opened(t, folder)
	if _, err := os.Stat(name + damagedSuffix); err != nil {
		t.Error(err)
	}
}

// TestDamagedCursor: a reader without a place begins with the oldest record.
func TestDamagedCursor(t *testing.T) {
	for _, text := range []string{"", "00000000 {}\n", "garbage", strings.Repeat("x", 1000)} {
		folder := t.TempDir()
		j := opened(t, folder)
		add(t, j, records(1, 2))
		if _, err := j.Reader("a").Read(1); err != nil || j.Reader("a").Ack(1) != nil {
			t.Fatal(err)
		}
		j.crash()
		if err := os.WriteFile(filepath.Join(folder, "a.cursor"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, opened(t, folder).Reader("a"), true); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("with the cursor %q: got %v, want both records", text, got)
		}
	}
}

// TestEpochs: the clock of an instance goes back, and no name comes again.
func TestEpochs(t *testing.T) {
	seen, at := map[string]bool{}, time.Unix(1e9, 0)
	for range 1000 {
		e := newEpoch(at)
		if seen[e] || len(e) > maxEpoch {
			t.Fatalf("the epoch %s comes twice", e)
		}
		seen[e] = true
	}
}

func TestFaultyConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Config{
		"the name of the instance": {Folder: t.TempDir()},
		"MaxBytes is 5":            {Folder: t.TempDir(), Instance: "i", MaxBytes: 5},
		"not a directory":          {Folder: file, Instance: "i"},
	} {
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func FuzzSegment(f *testing.F) {
	s := segment{instance: "i", epoch: "e", first: 3}
	text := s.head()
	for _, r := range records(1, 3) {
		text = appendRecord(text, &r)
	}
	f.Add(text)
	f.Add(text[:len(text)-1])
	f.Add(append(slices.Clone(text), 0, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, text []byte) {
		var read segment
		if read.scan(bytes.NewReader(text)) != nil {
			return
		}
		if read.size > int64(len(text)) || read.records != uint64(framesIn(text)-1) {
			t.Fatalf("%d bytes: size %d, %d records", len(text), read.size, read.records)
		}
		all := recordsIn(&read, text)
		again := read.head()
		for i := range all {
			again = appendRecord(again, &all[i])
		}
		var twice segment
		if err := twice.scan(bytes.NewReader(again)); err != nil || !slices.Equal(recordsIn(&twice, again), all) {
			t.Fatalf("written again: %d of %d records, %v", twice.records, len(all), err)
		}
	})
}

// recordsIn reads the records of a segment, up to the first one whose fields cannot be read.
func recordsIn(s *segment, text []byte) (all []Record) {
	w := newWindow(bytes.NewReader(text), s.begin, s.size)
	for w.at < s.size {
		payload, err := w.next()
		var r Record
		if err != nil || readRecord(payload, &r) != nil {
			break
		}
		all = append(all, r)
	}
	return all
}
