package config

import (
	"context"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/internal/readfile"
)

// lookEvery is the interval of checks without an event. Some file systems send no events, and a
// removed folder sends no further events.
const lookEvery = 5 * time.Second

// Files lists the files that the configuration names and that a reload reads again, without
// the access log and the certificates.
func (c *Config) Files() []string {
	var files []string
	all := []string{c.Identity.RegionDB, c.Identity.JWT.Keys, c.Log.KeysSecretFile}
	if c.Server != nil {
		all = append(all, c.Server.CallersFile)
	}
	for _, b := range c.bodies {
		all = append(all, b.path)
	}
	for _, file := range all {
		if file != "" {
			files = append(files, file)
		}
	}
	return append(files, c.written.networks.paths()...)
}

// Watch calls changed each time the configuration at path, or a file that Files lists,
// has changed since Load returned c. It returns when ctx ends. The result of changed
// lists the files to watch from then on. Watch always watches the files that the text at path
// names too, so that it notices a file that appears after the text.
//
// Watch uses the file events of the system, and also checks the files every few seconds. It follows
// files that are written in place or replaced by a rename, files that disappear and return, and
// symbolic links with a new target, as on Kubernetes. It calls changed once for several
// changes that are less than 200 ms apart.
//
// The error means that the system provides no file events. It is nil when ctx has ended.
func Watch(ctx context.Context, path string, c *Config, changed func() []string) error {
	w, err := newWatch(path)
	if err != nil {
		return err
	}
	now := stamps{}
	now.take(path)
	w.unchanged = same(c.stamps[path], now[path])
	return w.run(ctx, c.Files(), c.stamps, changed)
}

// watch is the state of one Watch. Only one goroutine uses it.
type watch struct {
	events *fsnotify.Watcher
	path   string
	every  time.Duration // The interval between two checks.
	// named are the files that the text at path names.
	named []string
	// unchanged means that the files of the configuration are those that the text names: a large text is not read again.
	unchanged bool

	seen    map[string]content
	reading readfile.Pending[content]
}

func newWatch(path string) (*watch, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("config: cannot watch %s: %w: raise fs.inotify.max_user_instances, or send SIGHUP after a change",
			path, err)
	}
	return &watch{events: events, path: path, every: lookEvery, seen: map[string]content{}}, nil
}

// run is Watch with the file stamps of the last read: a difference from since is a change.
func (w *watch) run(ctx context.Context, files []string, since stamps, changed func() []string) error {
	defer func() { _ = w.events.Close() }()
	if !w.unchanged {
		w.named = filesNamedBy(w.path)
	}
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
	look() // The first look finds changes since the last read.
	if err := readfile.AfterEvents(ctx, w.events.Events, w.events.Errors, w.every, look); err != nil {
		return fmt.Errorf("config: %w: send SIGHUP after a change", err)
	}
	return nil
}
