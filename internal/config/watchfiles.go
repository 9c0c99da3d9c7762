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

	"github.com/headgate/headgate/internal/readfile"
)

// follow sets the watched files: the configuration, files, and the files that the configuration
// names. It keeps the known content of files that were watched before, so that no
// change in between is missed.
func (w *watch) follow(files []string) {
	seen := make(map[string]content, 1+len(files)+len(w.named))
	for _, file := range slices.Concat([]string{w.path}, files, w.named) {
		w.meet(file)
		seen[file] = w.seen[file]
	}
	w.seen = seen
}

// meet notes the content of a file that was not watched before.
func (w *watch) meet(file string) {
	if _, met := w.seen[file]; !met {
		w.seen[file] = w.contentOf(file, content{})
	}
}

// listen requests events for the folder of a file, or for the nearest existing folder, for the
// file itself, and for the folder of a link's target. The file itself is needed because a
// container may see only the file, and not the folder in which it is edited. Checks at each interval
// find changes without events.
func (w *watch) listen(file string) {
	folder := filepath.Dir(file)
	for w.events.Add(folder) != nil && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
	}
	if behind, err := filepath.EvalSymlinks(file); err == nil {
		_ = w.events.Add(filepath.Dir(behind))
		_ = w.events.Add(behind)
	}
}

// look reports whether a file has changed. A missing file is not a change: it may return soon, and
// the reload would fail. A file that exists but cannot be read is a change: the
// reload fails, and operators see the error.
//
// look notes the content of files that a changed configuration names before the reload, so that it
// notices later changes of them.
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

// filesNamedBy returns the files that Files would list, even if the configuration is invalid.
func filesNamedBy(path string) []string {
	text, err := readBounded(path)
	if err != nil {
		return nil
	}
	_, r, _ := readConfig(path, text, os.LookupEnv, nil)
	if r == nil || r.locate(path) != nil {
		return nil
	}
	var named []string
	for _, f := range r.files {
		if strings.HasPrefix(f.value.path, "identity.") || f.value.path == "server.callers_file" || f.value.path == keysSecretField ||
			strings.HasSuffix(f.value.path, ".body_file") || strings.HasSuffix(f.value.path, "."+networksFileField) {
			named = append(named, *f.into)
		}
	}
	return named
}

// content is the state of a file. The zero content is a missing file.
type content struct {
	info    fs.FileInfo
	digest  [sha256.Size]byte
	at      time.Time // The time of the read.
	problem string    // Why the file could not be read. Then the other fields are zero.
}

// maxFollowed is more than any named file may have. Of a larger file, only this many bytes are read.
const maxFollowed = 1 << 30

// clockStep is longer than the resolution of file system clocks. Two changes within clockStep can
// have the same time stamp.
const clockStep = 2 * time.Second

// contentOf returns the content of a file. It does not read a file with unchanged metadata. It
// requests events first, so that a change after the read causes an event.
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

// same reports whether the metadata shows no change. Nil stands for a missing file, which is never
// the same.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// stamps has the metadata of files before they were read, by path.
type stamps map[string]fs.FileInfo

func (s stamps) take(files ...string) {
	for _, file := range files {
		var one readfile.Pending[fs.FileInfo]
		if info, err := one.Do(file, func() (fs.FileInfo, error) { return os.Stat(file) }); err == nil {
			s[file] = info
		}
	}
}
