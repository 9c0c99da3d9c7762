package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/readfile"
)

const (
	// quiet is how long nothing must happen in the folders before the files are read:
	// an editor writes, renames and removes, and none of that is a configuration.
	quiet = 200 * time.Millisecond
	// mostQuiet bounds the wait for quiet in a folder where something always happens.
	mostQuiet = 2 * time.Second
	// lookEvery is how often the files are looked at without being told: some file
	// systems tell nothing, and a folder that was removed tells nothing more.
	lookEvery = 5 * time.Second
)

// Files lists the files that the configuration names and that a reload reads again,
// the access log and the certificates excepted.
func (c *Config) Files() []string {
	var files []string
	for _, file := range []string{c.Identity.RegionDB, c.Identity.JWT.Keys} {
		if file != "" {
			files = append(files, file)
		}
	}
	return files
}

// Watch calls changed after the content of the configuration at path, or of a file
// that its identity names, has changed since Load gave c, until ctx ends; changed
// gives the files to look at from then on. Those that the text at path names are
// looked at in any case, so that one which comes later than the text is noticed when
// it comes.
//
// The system tells Watch of changes, and Watch looks by itself every few seconds
// too. It follows files that are written in place or replaced by a rename, files that
// vanish and come back, and symbolic links that are pointed elsewhere, as Kubernetes
// does. It calls changed once for changes that come within a fifth of a second of
// each other.
//
// The error says that the system gives no watch; it is nil when ctx has ended.
func Watch(ctx context.Context, path string, c *Config, changed func() []string) error {
	w, err := newWatch(path)
	if err != nil {
		return err
	}
	return w.run(ctx, c.Files(), c.stamps, changed)
}

// watch is one Watch. One goroutine runs it.
type watch struct {
	told  *fsnotify.Watcher
	path  string
	every time.Duration // between two looks
	// named are the files that the text at path names.
	named   []string
	seen    map[string]content
	reading readfile.Pending[content]
}

func newWatch(path string) (*watch, error) {
	told, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("config: %s is not followed: %w: raise fs.inotify.max_user_instances, or send SIGHUP after a change",
			path, err)
	}
	return &watch{told: told, path: path, every: lookEvery, seen: map[string]content{}}, nil
}

// run is Watch for files of which it is known what they were like when they were
// last read: a difference to that is a change.
func (w *watch) run(ctx context.Context, files []string, since stamps, changed func() []string) error {
	defer func() { _ = w.told.Close() }()
	w.named = filesNamedBy(w.path)
	w.follow(files)
	for file, stamp := range since {
		if was, found := w.seen[file]; found && !same(stamp, was.info) {
			w.seen[file] = content{}
		}
	}
	look := func() {
		if w.look() && ctx.Err() == nil {
			w.follow(changed())
		}
	}
	look() // What has changed since comes first.
	return wait(ctx, w.told.Events, w.told.Errors, w.every, look)
}

// wait looks, until ctx ends, whenever something has happened and quiet has come
// back, and every so often besides.
func wait(ctx context.Context, events <-chan fsnotify.Event, faults <-chan error, every time.Duration, look func()) error {
	unasked := time.NewTicker(every)
	defer unasked.Stop()
	calm := time.NewTimer(mostQuiet)
	calm.Stop()
	defer calm.Stop()
	var first time.Time // of what has happened since the last look; zero is nothing
	for {
		var open bool
		select {
		case <-ctx.Done():
			return nil
		case _, open = <-events:
		case _, open = <-faults: // Too many events at once, as a rule: some of them may be ours.
		case <-calm.C:
			first = time.Time{}
			look()
			continue
		case <-unasked.C:
			look()
			continue
		}
		if !open {
			return errors.New("config: the system's watch has ended: send SIGHUP after a change")
		}
		if first.IsZero() {
			first = time.Now()
		}
		calm.Reset(max(0, min(quiet, mostQuiet-time.Since(first))))
	}
}
