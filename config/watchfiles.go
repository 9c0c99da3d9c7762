package config

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/readfile"
)

// follow makes the configuration, files, and those that the configuration names the
// files that are looked at. What was seen of them before stays seen, so that no
// change between is missed.
func (w *watch) follow(files []string) {
	seen := make(map[string]content, 1+len(files)+len(w.named))
	for _, file := range slices.Concat([]string{w.path}, files, w.named) {
		w.meet(file)
		seen[file] = w.seen[file]
	}
	w.seen = seen
}

// meet notes what is in a file that was not looked at before.
func (w *watch) meet(file string) {
	if _, met := w.seen[file]; !met {
		w.seen[file] = w.contentOf(file, content{})
	}
}

// listen asks to be told of what happens in the folder of a file (while there is
// none, in the one where it would come), to the file, and in the folder of the one
// behind it when it is a link. The file itself is asked for too since a container may
// see it alone, and not the folder in which it is edited. What the system does not
// tell of is looked at all the same, later.
func (w *watch) listen(file string) {
	folder := filepath.Dir(file)
	for w.told.Add(folder) != nil && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
	}
	if behind, err := filepath.EvalSymlinks(file); err == nil {
		_ = w.told.Add(filepath.Dir(behind))
		_ = w.told.Add(behind)
	}
}

// look reports whether a file has changed. One that is not there is no change: it
// may be about to come back, and the reload would fail. One that is there and cannot be
// read is a change: the reload fails, and operators see it.
//
// Files that a changed configuration names are met before it is loaded, so that none
// of them can change, or come, between the two unnoticed.
func (w *watch) look() bool {
	changed := w.lookAt(w.path)
	if changed {
		w.named = filesNamedBy(w.path)
		for _, file := range w.named {
			w.meet(file)
		}
	}
	for file := range w.seen {
		if file != w.path && w.lookAt(file) {
			changed = true
		}
	}
	return changed
}

func (w *watch) lookAt(file string) bool {
	before := w.seen[file]
	now := w.contentOf(file, before)
	if now == (content{}) {
		return false
	}
	w.seen[file] = now
	return now.digest != before.digest || now.problem != before.problem
}

// filesNamedBy gives the files that the identity of a text names, whether the text
// is a good configuration or not.
func filesNamedBy(path string) []string {
	text, err := readBounded(path)
	if err != nil {
		return nil
	}
	_, r, _ := readConfig(path, text, os.LookupEnv)
	if r == nil || r.locate(path) != nil {
		return nil
	}
	var named []string
	for _, f := range r.files {
		if strings.HasPrefix(f.value.path, "identity.") {
			named = append(named, *f.into)
		}
	}
	return named
}

// content is what was in a file. The zero content is a file that is not there.
type content struct {
	info    fs.FileInfo
	digest  [sha256.Size]byte
	at      time.Time // it was read
	problem string    // why it could not be read; then nothing else is known
}

// maxFollowed is more than any file may have that a configuration names. Of a larger one only so much is looked at.
const maxFollowed = 1 << 30

// clockStep is more than the clocks of file systems go by: within it of a change a
// file can change again and look the same.
const clockStep = 2 * time.Second

// contentOf gives what is in a file now. One that looks as it did is not read. It listens
// first, so that a change after the reading is told: its folder, or the link, may be another one.
func (w *watch) contentOf(file string, before content) content {
	now, err := w.reading.Do(file, func() (content, error) {
		w.listen(file)
		return contentOf(file, before)
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return content{}
	case err != nil:
		return content{problem: err.Error()}
	}
	return now
}

func contentOf(file string, before content) (content, error) {
	info, err := os.Stat(file)
	if err != nil {
		return content{}, err
	}
	if before.info != nil && same(before.info, info) && before.at.Sub(info.ModTime()) > clockStep {
		return before, nil
	}
	open, err := readfile.Open(file)
	if err != nil {
		return content{}, err
	}
	defer func() { _ = open.Close() }()
	now, hash := content{at: time.Now()}, sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(open, maxFollowed)); err != nil {
		return content{}, err
	}
	if now.info, err = open.Stat(); err != nil {
		return content{}, err
	}
	hash.Sum(now.digest[:0])
	return now, nil
}

// same reports whether nothing speaks for a change of a file. One that is not there
// is nil, and never the same.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// stamps are what files were like before they were read.
type stamps map[string]fs.FileInfo

func (s stamps) take(files ...string) {
	for _, file := range files {
		var one readfile.Pending[fs.FileInfo]
		if info, err := one.Do(file, func() (fs.FileInfo, error) { return os.Stat(file) }); err == nil {
			s[file] = info
		}
	}
}
