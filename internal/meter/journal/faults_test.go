package journal

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// faultyFiles fails writes and syncs as told.
type faultyFiles struct {
	Files

	// room is the number of bytes that can still be written; a write beyond it is short.
	room      int64
	failSync  bool
	synced    []string // names
	failStart bool
	failCut   bool
}

type faultyFile struct {
	File

	files *faultyFiles
	name  string
}

var errDisk = errors.New("the disk fails")

func (f *faultyFiles) OpenFile(name string, flags int, mode fs.FileMode) (File, error) {
	if f.failStart {
		return nil, errDisk
	}
	file, err := f.Files.OpenFile(name, flags, mode)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

func (f *faultyFile) WriteAt(text []byte, at int64) (int, error) {
	if int64(len(text)) > f.files.room {
		n, _ := f.File.WriteAt(text[:f.files.room], at)
		f.files.room = 0
		return n, syscall.ENOSPC
	}
	f.files.room -= int64(len(text))
	return f.File.WriteAt(text, at)
}

func (f *faultyFile) Sync() error {
	if f.files.failSync {
		return errDisk
	}
	f.files.synced = append(f.files.synced, f.name)
	return f.File.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if f.files.failCut {
		return errDisk
	}
	return f.File.Truncate(size)
}

// TestFaultsOfTheDisk: an attempt fails, the caller repeats it, and each record is there once with one id. After a crash, records
// that a failed attempt has left have the same ids as those of the repeated one.
func TestFaultsOfTheDisk(t *testing.T) {
	const plenty = 1 << 40
	for name, c := range map[string]struct {
		fail, heal func(*faultyFiles)
	}{
		"the disk is full":        {func(f *faultyFiles) { f.room = 100 }, func(f *faultyFiles) { f.room = plenty }},
		"full, and cannot cut":    {func(f *faultyFiles) { f.room, f.failCut = 100, true }, func(f *faultyFiles) { f.room, f.failCut = plenty, false }},
		"a sync fails":            {func(f *faultyFiles) { f.failSync = true }, func(f *faultyFiles) { f.failSync = false }},
		"a sync fails, and a cut": {func(f *faultyFiles) { f.failSync, f.failCut = true, true }, func(f *faultyFiles) { f.failSync, f.failCut = false, false }},
	} {
		t.Run(name, func(t *testing.T) {
			files := &faultyFiles{Files: Machine(), room: plenty}
			folder := t.TempDir()
			j := opened(t, folder, func(c *Config) { c.Files = files })
			add(t, j, records(1, 2))
			c.fail(files)
			all := records(3, 5)
			for range 3 {
				if n, err := j.Append(all, true); err == nil || n != 0 {
					t.Fatalf("wrote %d, %v, want an error", n, err)
				}
				if got := read(t, j.Reader("a"), false); !slices.Equal(got, []int64{1, 2}) {
					t.Fatalf("a reader sees %v", got)
				}
			}
			first := slices.Clone(all)
			c.heal(files)
			if n, err := j.Append(all, true); err != nil || n != len(all) || !slices.Equal(all, first) {
				t.Fatalf("repeated: %d, %v, with the ids %v, want those of the first attempt, %v", n, err, all, first)
			}
			if got := read(t, j.Reader("a"), true); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6, 7}) {
				t.Errorf("read %v", got)
			}
			if failed := strings.Contains(name, "sync"); failed != (j.Stats().Segments > 1) {
				t.Errorf("%d files: after a failed sync, what the file has is unknown, and another one is needed", j.Stats().Segments)
			}
			if j.Stats().Faults < 3 {
				t.Errorf("%d faults are counted, want 3", j.Stats().Faults)
			}
			j.crash()
			wantOneContent(t, opened(t, folder).Reader("b"), 7)
		})
	}
}

// wantOneContent reads all records, and checks that equal ids have equal contents.
func wantOneContent(t *testing.T, r *Reader, want int) {
	t.Helper()
	seen := map[ID]Record{}
	for {
		all, err := r.Read(100)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			break
		}
		for i := range all {
			if former, twice := seen[all[i].ID]; twice && former != all[i] {
				t.Errorf("one id for %+v and %+v", former, all[i])
			}
			seen[all[i].ID] = all[i]
		}
		if err := r.Ack(len(all)); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != want {
		t.Errorf("%d records after a crash, want %d", len(seen), want)
	}
}

// TestFailedFile: no file can be made, and later one can.
func TestFailedFile(t *testing.T) {
	files := &faultyFiles{Files: Machine(), room: 1 << 40}
	j := opened(t, t.TempDir(), func(c *Config) { c.Files = files })
	files.failStart = true
	if _, err := j.Append(records(1, 1), false); !errors.Is(err, errDisk) {
		t.Errorf("got %v", err)
	}
	files.failStart, files.room = false, 10 // Not enough for the head.
	if _, err := j.Append(records(1, 1), false); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	files.room = 1 << 40
	add(t, j, records(1, 1))
	files.failSync = true
	if err := j.Sync(); !errors.Is(err, errDisk) {
		t.Errorf("Sync gave %v", err)
	}
	files.failSync = false
	add(t, j, records(2, 1)) // In another file.
	if got := read(t, j.Reader("a"), true); !slices.Equal(got, []int64{1, 2}) || j.Stats().Segments != 2 {
		t.Errorf("read %v in %d files", got, j.Stats().Segments)
	}
}

// TestNamesAreSynced: after a new file, the folder is synced before a synced record is there. A file that is full does not hold up
// records: the next Sync syncs it, and the name of the new file.
func TestNamesAreSynced(t *testing.T) {
	files, folder := &faultyFiles{Files: Machine(), room: 1 << 40}, t.TempDir()
	j := opened(t, folder, func(c *Config) { c.Files = files })
	if n, err := j.Append(records(1, 1), true); n != 1 || err != nil {
		t.Fatal(err)
	}
	first, second := segmentName(folder, 1), segmentName(folder, 2)
	if want := []string{folder, first}; !slices.Equal(files.synced, want) {
		t.Errorf("synced %v, want %v", files.synced, want)
	}
	for j.last().size < j.most { // One record at a time, so that no other file begins.
		add(t, j, records(1, 1))
	}
	files.failSync = true
	if n, err := j.Append(records(1, 1), false); n != 1 || err != nil {
		t.Errorf("a record after a full file: %d, %v", n, err)
	}
	if err := j.Sync(); !errors.Is(err, errDisk) || j.Stats().Faults != 3 {
		t.Errorf("a failed Sync gave %v, with %d faults, want one of the file, of the name and of the next file", err, j.Stats().Faults)
	}
	files.failSync, files.synced = false, nil
	add(t, j, records(1, 1))
	if err := j.Sync(); err != nil || !slices.Contains(files.synced, folder) {
		t.Errorf("after a failed Sync: %v, and synced %v", err, files.synced)
	}
	if slices.Contains(files.synced, first) || slices.Contains(files.synced, second) {
		t.Errorf("files whose sync has failed are synced again: %v", files.synced)
	}
}

// TestFullFilesAreBounded: without a Sync, full files wait up to a bound. Then each is synced before the next one.
func TestFullFilesAreBounded(t *testing.T) {
	files := &faultyFiles{Files: Machine(), room: 1 << 40}
	j := opened(t, t.TempDir(), func(c *Config) { c.Files = files })
	for j.Stats().Segments == 0 || j.last().number < mostFull+4 {
		add(t, j, records(1, 500))
	}
	if len(j.full) != mostFull || len(files.synced) != 3 {
		t.Errorf("%d files wait, and %d are synced, want %d and 3", len(j.full), len(files.synced), mostFull)
	}
	if err := j.Sync(); err != nil || len(j.full) != 0 || len(files.synced) != 3+mostFull+2 {
		t.Errorf("after Sync, %d files wait, and %d are synced, want 0 and all: %v", len(j.full), len(files.synced), err)
	}
}
