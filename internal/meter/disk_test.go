package meter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/meter/journal"
	"github.com/headgate/headgate/internal/testkit/logs"
)

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

// TestFullDiskIsTold: each time that the disk is full has a line when it begins and when it ends, and the counts say what waits. Close
// names what is lost.
func TestFullDiskIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, log := &full{Files: journal.Machine()}, new(logs.Text)
		m := opened(t, Config{Outputs: []Output{newCollecting()}, Files: files, Log: slog.New(slog.NewTextHandler(log, nil))})
		<-time.After(time.Second / 2)
		for before := range 2 {
			files.set(true)
			for c := range 3 {
				m.Count(used(fmt.Sprint("c", c), 1, 1))
			}
			<-time.After(5 * time.Second)
			m.Count(used("late", 1, 1))
			if s := m.Stats(); s.Waiting != 4 || s.Journal.Error != errFull.Error() {
				t.Errorf("with a full disk, %d records wait and the error is %q, want 4 and %q", s.Waiting, s.Journal.Error, errFull)
			}
			files.set(false)
			<-time.After(2 * time.Second)
			if s := m.Stats(); s.Waiting != 0 || s.Journal.Error != "" {
				t.Errorf("with space again, %d records wait and the error is %q", s.Waiting, s.Journal.Error)
			}
			for _, line := range []string{"the journal cannot be written", "the journal is written again"} {
				if n := strings.Count(log.String(), line); n != before+1 {
					t.Errorf("after time %d of a full disk, %d lines say %q", before+1, n, line)
				}
			}
		}
		files.set(true)
		m.Count(used("unlucky", 61, 7))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // The output may wait for the disk too.
		defer cancel()
		if err := m.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 records could not be written") {
			t.Errorf("Close with a full disk: %v", err)
		}
		const want = `customer=unlucky quota=calls minute=1970-01-01T01:01:00.000Z admitted=7 metered=0 refused=0`
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not name the lost record: %s", log)
		}
	})
}

// TestFullDiskOfABusyInstance: each minute has all the customers that it can have. The disk is full for four minutes, and none is under
// the others: the rows from before make room.
func TestFullDiskOfABusyInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &full{Files: journal.Machine()}
		out := newCollecting()
		m := opened(t, Config{Outputs: []Output{out}, Files: files, MaxCustomers: 5})
		<-time.After(time.Second / 2)
		for second := range int64(8 * 60) {
			files.set(second >= 4*60)
			for c := range 5 {
				m.Count(used(fmt.Sprint("c", c), second/60, 1))
			}
			<-time.After(time.Second)
		}
		if s := m.Stats(); s.Others != 0 || s.Journal.Faults < 200 {
			t.Errorf("with a full disk: %+v", s)
		}
		files.set(false)
		<-time.After(3 * time.Second)
		closed(t, m)
		var total int64
		for _, s := range out.sums() {
			total += s.admitted
		}
		if total != 5*8*60 || m.Stats().Lost != 0 {
			t.Errorf("the records add up to %d, and %d are lost; want %d and 0", total, m.Stats().Lost, 5*8*60)
		}
	})
}

// TestSlowSync: a sync of the disk takes a minute. Usage is written every second all the same, also into further files.
func TestSlowSync(t *testing.T) {
	for _, customers := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			files := slowSyncs{journal.Machine(), new(atomic.Int64)}
			m := opened(t, Config{Outputs: []Output{newCollecting()}, Files: files, MaxBytes: journal.MinBytes})
			<-time.After(time.Second / 2)
			for range 30 {
				for c := range customers {
					m.Count(used(fmt.Sprint("c", c), 1, 1))
				}
				<-time.After(time.Second)
			}
			if written := m.Stats().Journal.Written; written < uint64(29*customers) || customers > 1 && files.made.Load() < 3 {
				t.Errorf("%d records are written within 30s to %d files, want %d to some", written, files.made.Load(), 29*customers)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := m.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// slowSyncs is a file system whose syncs take a minute.
type slowSyncs struct {
	journal.Files

	made *atomic.Int64 // the number of new files
}

func (s slowSyncs) OpenFile(name string, flags int, mode fileMode) (journal.File, error) {
	f, err := s.Files.OpenFile(name, flags, mode)
	if err != nil {
		return nil, err
	}
	if flags&os.O_EXCL != 0 {
		s.made.Add(1)
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
	file, err := f.Files.OpenFile(name, flags, mode)
	if err != nil {
		return nil, err
	}
	return fullFile{file, f}, nil
}

type fullFile struct {
	journal.File

	disk *full
}

func (f fullFile) WriteAt(text []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.now {
		return 0, errFull
	}
	return f.File.WriteAt(text, at)
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
		if elapsed := time.Since(begun); elapsed != 5*time.Second {
			t.Errorf("Close took %v, want 5s", elapsed)
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

// TestCloseWithAHungDisk: a write, a sync or an output never returns. Close returns a second after its time, and says so.
func TestCloseWithAHungDisk(t *testing.T) {
	for _, what := range []string{"write", "sync", "output"} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			out := &hangingOutput{newCollecting(), nil}
			files := &hungFiles{Files: journal.Machine()}
			if what == "output" {
				out.until = release
			}
			m := opened(t, Config{Outputs: []Output{out}, Files: files})
			m.Count(used("c", 1, 1))
			<-time.After(10 * time.Second)
			synctest.Wait() // The sync of this second must not wait for the lock of a write that hangs: time would stop in the bubble.
			m.Count(used("c", 1, 1))
			switch what {
			case "write":
				files.write.Store(&release)
			case "sync":
				files.sync.Store(&release)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			begun := time.Now()
			if err := m.Close(ctx); !errors.Is(err, ErrHung) || time.Since(begun) != 3*time.Second+closeGrace {
				t.Errorf("a %s hangs: Close took %v and gave %v, want %v and ErrHung", what, time.Since(begun), err, 3*time.Second+closeGrace)
			}
			_ = m.Stats() // It does not wait for the disk.
			close(release)
			synctest.Wait() // The last writes end before the folder is removed.
		})
	}
}

// hangingOutput is an output that does not return before a channel is closed.
type hangingOutput struct {
	*collecting

	until chan struct{}
}

func (h *hangingOutput) Deliver(ctx context.Context, all []journal.Record) (int, error) {
	if h.until != nil {
		<-h.until
	}
	return h.collecting.Deliver(ctx, all)
}

// hungFiles is a file system whose writes or syncs do not return before a channel is closed.
type hungFiles struct {
	journal.Files

	write, sync atomic.Pointer[chan struct{}]
}

func (h *hungFiles) OpenFile(name string, flags int, mode fileMode) (journal.File, error) {
	f, err := h.Files.OpenFile(name, flags, mode)
	if err != nil {
		return nil, err
	}
	return hungFile{f, h}, nil
}

type hungFile struct {
	journal.File

	files *hungFiles
}

func (h hungFile) WriteAt(text []byte, at int64) (int, error) {
	if until := h.files.write.Load(); until != nil {
		<-*until
	}
	return h.File.WriteAt(text, at)
}

func (h hungFile) Sync() error {
	if until := h.files.sync.Load(); until != nil {
		<-*until
	}
	return h.File.Sync()
}
