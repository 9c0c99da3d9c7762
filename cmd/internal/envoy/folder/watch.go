package folder

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// maxFolders bounds the folders that are watched. Changes in further ones are noticed without events.
const maxFolders = 1000

// watch is the state of one Follow. Only one goroutine uses it.
type watch struct {
	source *Source
	seen   string // The state of the files at the last look.

	system  *fsnotify.Watcher // Nil before the first look, and when the system provides no events.
	events  <-chan fsnotify.Event
	errors  <-chan error
	target  string // Where the folder was at the last look, without links.
	renewed bool   // The channels of the last Watcher will close, because another one takes its place.
	without bool   // The system provides no events.
}

// renew replaces the Watcher. One that is kept over changes of a link would keep the watches of all
// former targets.
func (w *watch) renew() {
	w.close()
	w.renewed = w.system != nil
	w.system, w.events, w.errors = nil, nil, nil
	if w.without {
		return
	}
	system, err := fsnotify.NewWatcher()
	if err != nil {
		w.without = true
		return
	}
	w.system, w.events, w.errors = system, system.Events, system.Errors
}

// ended notes that the channels of a Watcher have closed.
func (w *watch) ended() {
	if !w.renewed {
		w.without = true
		w.renew()
	}
	w.renewed = false
}

func (w *watch) close() {
	if w.system != nil {
		_ = w.system.Close()
	}
}

// look reads the files, and applies them or reports their faults if they differ from those of the last look.
func (w *watch) look(apply func([]guard.Domain) error, fault func(error)) {
	w.subscribe()
	files, err := w.source.read()
	state := "fault: " + fmt.Sprint(err)
	if err == nil {
		state = digest(files)
	}
	if state == w.seen {
		return
	}
	w.seen = state
	var domains []guard.Domain
	if err == nil {
		domains, err = w.source.parse(files)
	}
	if err != nil {
		fault(err)
		return
	}
	_ = apply(domains) // The receiver reports what it refuses.
}

// subscribe asks for the events of the folders, as far as they exist, and of the folder that has the
// root: the root may be a link whose target changes. It comes before the reading, so that no change
// after the reading is missed.
func (w *watch) subscribe() {
	target, err := filepath.EvalSymlinks(w.source.files)
	if err != nil {
		target = ""
	}
	if target != w.target || w.system == nil && !w.without {
		w.target = target
		w.renew()
	}
	if w.system == nil {
		return
	}
	_ = w.system.Add(filepath.Dir(filepath.Clean(w.source.config.Root)))
	_ = w.system.Add(w.source.config.Root)
	left := maxFolders
	_ = filepath.WalkDir(w.target, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // The reading reports it.
		}
		if left--; left < 0 {
			return fs.SkipAll
		}
		_ = w.system.Add(path)
		return nil
	})
}

// digest identifies the names and the contents of files.
func digest(files []config.EnvoyFile) string {
	sum := sha256.New()
	for _, f := range files {
		for _, part := range [][]byte{[]byte(f.Name), f.Text} {
			sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			sum.Write(part)
		}
	}
	return string(sum.Sum(nil))
}
