package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/internal/testkit/fifo"
	"github.com/headgate/headgate/internal/testkit/leak"
)

// deadline is far longer than the system takes to send an event.
const deadline = 30 * time.Second

// watched is a folder with a configuration, and a running watch of that configuration.
type watched struct {
	t      *testing.T
	folder string
	path   string
	every  time.Duration
	// found receives the content of the configuration and of the other files at each change.
	found chan string
	files []string
}

// texts returns the content of the files.
func (w *watched) texts() string {
	text := ""
	for _, file := range append([]string{w.path}, w.files...) {
		part, err := os.ReadFile(file)
		if err != nil {
			part = []byte("(none)")
		}
		text += string(part) + "|"
	}
	return text
}

// watchFolder starts a watch. With a long every, only events of the system can report changes.
func watchFolder(t *testing.T, dir string, every time.Duration, files ...string) *watched {
	t.Helper()
	w := &watched{t: t, folder: dir, path: filepath.Join(dir, "headgate.yaml"), every: every, found: make(chan string, 100), files: files}
	return w
}

func (w *watched) start() {
	w.t.Helper()
	one, err := newWatch(w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	one.every = w.every
	since := stamps{}
	since.take(w.path)
	since.take(w.files...)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- one.run(ctx, w.files, since, func() []string {
			w.found <- w.texts()
			return w.files
		})
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// leaveNone checks that the test and its subtests leave no goroutine behind.
func leaveNone(t *testing.T) {
	t.Helper()
	ended := leak.Watch(t)
	t.Cleanup(func() { ended() })
}

// await waits for a change after which the files have these texts.
func (w *watched) await(texts ...string) {
	w.t.Helper()
	want := strings.Join(texts, "|") + "|"
	end := time.After(deadline)
	for {
		select {
		case got := <-w.found:
			if got == want {
				return
			}
		case <-end:
			w.t.Fatalf("no change reported with the texts %q before the deadline: the files have %q", want, w.texts())
		}
	}
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) at(name string) string { return filepath.Join(w.folder, name) }

func (w *watched) write(name, text string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.at(name)), 0o700))
	w.must(os.WriteFile(w.at(name), []byte(text), 0o600))
}

func (w *watched) rename(from, to string) { w.t.Helper(); w.must(os.Rename(w.at(from), w.at(to))) }
func (w *watched) remove(name string)     { w.t.Helper(); w.must(os.RemoveAll(w.at(name))) }
func (w *watched) link(to, name string)   { w.t.Helper(); w.must(os.Symlink(to, w.at(name))) }

// publish updates files like the kubelet updates a mounted ConfigMap. It makes a folder for the
// new version, switches the link ..data to it by a rename, and removes the old folder.
// Programs use links through ..data, which are made only once.
func (w *watched) publish(version, before string, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		w.write(version+"/"+name, text)
	}
	w.link(version, "..data_tmp")
	w.rename("..data_tmp", "..data")
	if before != "" {
		w.remove(before)
		return
	}
	for name := range files {
		w.link("..data/"+name, name)
	}
}

// TestWatch changes a file in all usual ways. The watch makes no checks of its own, so the system
// must send an event for each change.
func TestWatch(t *testing.T) {
	leaveNone(t)
	for name, steps := range map[string]func(w *watched){
		"written in place": func(w *watched) {
			for _, text := range []string{"two", "a longer text", "", "four"} {
				w.write("headgate.yaml", text)
				w.await(text)
			}
		},
		"replaced by a rename": func(w *watched) {
			for i := range 3 {
				text := fmt.Sprint("text ", i)
				w.write(".headgate.yaml.swp", text)
				w.rename(".headgate.yaml.swp", "headgate.yaml")
				w.await(text)
			}
		},
		"by an editor that keeps a copy": func(w *watched) {
			for i := range 3 {
				text := fmt.Sprint("text ", i)
				w.rename("headgate.yaml", "headgate.yaml~")
				w.write("headgate.yaml", text)
				w.remove("headgate.yaml~")
				w.await(text)
			}
		},
		"gone, and back with another text": func(w *watched) {
			for i := range 3 {
				text := fmt.Sprint("text ", i)
				w.remove("headgate.yaml")
				w.write("headgate.yaml", text)
				w.await(text)
			}
		},
		"gone with its folder, and back": func(w *watched) {
			for i := range 3 {
				text := fmt.Sprint("text ", i)
				w.remove("")
				w.write("headgate.yaml", text)
				w.await(text)
			}
		},
		"in another folder of the same name": func(w *watched) {
			w.write("../next/headgate.yaml", "two")
			w.rename("", "../before")
			w.rename("../next", "")
			w.await("two")
			w.write("headgate.yaml", "three")
			w.await("three")
		},
		"a link that is pointed elsewhere": func(w *watched) {
			w.write("../releases/2/headgate.yaml", "two")
			w.link("../releases/2/headgate.yaml", "tmp")
			w.rename("tmp", "headgate.yaml")
			w.await("two")
			w.write("../releases/2/headgate.yaml", "two, edited")
			w.await("two, edited")
			w.write("../releases/3.yaml", "three")
			w.rename("../releases/3.yaml", "../releases/2/headgate.yaml")
			w.await("three")
		},
		"a program that writes in many steps": func(w *watched) {
			file, err := os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC, 0)
			w.must(err)
			text := strings.Repeat("x", 1000)
			for i := range text {
				_, err := file.WriteString(text[i : i+1])
				w.must(err)
			}
			w.must(file.Close())
			w.await(text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := watchFolder(t, filepath.Join(t.TempDir(), "conf"), time.Hour)
			w.write("headgate.yaml", "one")
			w.start()
			steps(w)
		})
	}
}

// TestWatchInKubernetes uses the exact layout of a mounted ConfigMap, with a second file.
func TestWatchInKubernetes(t *testing.T) {
	leaveNone(t)
	dir := t.TempDir()
	w := watchFolder(t, dir, time.Hour, filepath.Join(dir, "jwks.json"))
	at := func(i int) string { return fmt.Sprintf("..2026_11_21_14_20_0%d.12345", i) }
	w.publish(at(0), "", map[string]string{"headgate.yaml": "zero", "jwks.json": "keys"})
	w.start()
	for i, text := range []string{"one", "two", "two", "three"} {
		keys := fmt.Sprint("keys ", i)
		w.publish(at(i+1), at(i), map[string]string{"headgate.yaml": text, "jwks.json": keys})
		w.await(text, keys)
	}
}

// TestWatchLooksByItself drops all events, so that only the checks at intervals find changes.
func TestWatchLooksByItself(t *testing.T) {
	leaveNone(t)
	w := watchFolder(t, t.TempDir(), time.Millisecond)
	w.write("headgate.yaml", "one")
	one, err := newWatch(w.path)
	w.must(err)
	w.must(one.events.Close()) // From here on, Add fails.
	one.events.Events, one.events.Errors = nil, nil
	one.every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- one.run(ctx, nil, nil, func() []string { w.found <- w.texts(); return nil })
	}()
	for i := range 3 {
		// The first write may come before the watch has begun. Then it is not a change.
		for text, found := fmt.Sprint("text ", i), false; !found; text += "." {
			w.write("headgate.yaml", text)
			select {
			case <-w.found:
				found = true
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWatchSince: the watch finds changes since the last read at once.
func TestWatchSince(t *testing.T) {
	leaveNone(t)
	dir := t.TempDir()
	w := watchFolder(t, dir, time.Hour, filepath.Join(dir, "keys"))
	w.write("headgate.yaml", "one")
	w.write("keys", "k")
	since := stamps{}
	since.take(w.path, w.files[0])
	for name, change := range map[string]func(){
		"the configuration": func() { w.write("headgate.yaml", "one, and more") },
		"another file":      func() { w.write("keys", "k and l") },
	} {
		change()
		one, err := newWatch(w.path)
		w.must(err)
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		w.must(one.run(ctx, w.files, since, func() []string { calls++; cancel(); return w.files }))
		cancel()
		if calls != 1 {
			t.Errorf("%s: got %d changes, want 1", name, calls)
		}
		since.take(w.path, w.files[0])
	}
}

// TestWhatIsNoChange calls look without the loop, and expects no change.
func TestWhatIsNoChange(t *testing.T) {
	w := watchFolder(t, t.TempDir(), 0)
	w.write("headgate.yaml", "one")
	one, err := newWatch(w.path)
	w.must(err)
	defer func() { w.must(one.events.Close()) }()
	one.follow([]string{w.at("none")})
	for _, row := range []struct {
		name   string
		change func()
		want   bool
	}{
		{"nothing", func() {}, false},
		{"touched", func() { w.must(os.Chtimes(w.path, time.Now(), time.Now().Add(-time.Hour))) }, false},
		{"replaced by a copy", func() { w.write("copy", "one"); w.rename("copy", "headgate.yaml") }, false},
		{"other files", func() { w.write("other.yaml", "x") }, false},
		{"gone", func() { w.remove("headgate.yaml") }, false},
		{"back as it was", func() { w.write("headgate.yaml", "one") }, false},
		{"a folder of its name", func() { w.remove("headgate.yaml"); w.write("headgate.yaml/x", "two") }, true},
		{"as it was before the folder", func() { w.remove("headgate.yaml"); w.write("headgate.yaml", "one") }, true},
		{"a pipe in its place", func() { w.remove("headgate.yaml"); w.must(fifo.Make(w.path)) }, true},
		{"gone again", func() { w.remove("headgate.yaml") }, false},
		{"back as another", func() { w.remove("headgate.yaml"); w.write("headgate.yaml", "two") }, true},
		{"as long, and of the same time", func() {
			info, err := os.Stat(w.path)
			w.must(err)
			w.write("headgate.yaml", "ten")
			w.must(os.Chtimes(w.path, time.Now(), info.ModTime()))
		}, true},
		{"another file that comes", func() { w.write("none", "") }, true},
		{"and is written", func() { w.write("none", "x") }, true},
	} {
		row.change()
		if got := one.look(); got != row.want {
			t.Errorf("%s: look reports a change: %t, want the opposite", row.name, got)
		}
		if one.look() {
			t.Errorf("%s: the next look reports a change again, want none", row.name)
		}
	}
}

// toldOf waits for the event that a file with the name was made or written.
func toldOf(t *testing.T, one *watch, name string) {
	t.Helper()
	for end := time.After(deadline); ; {
		select {
		case e := <-one.events.Events:
			if e.Name == name && (e.Has(fsnotify.Create) || e.Has(fsnotify.Write)) {
				return
			}
		case <-end:
			t.Fatalf("no event for %s before the deadline", name)
		}
	}
}

// TestWhatIsTold also calls look without the loop. After each call, the system must send events for
// later changes, whether or not look has found a change.
func TestWhatIsTold(t *testing.T) {
	for name, steps := range map[string]func(w *watched, one *watch){
		"a folder that comes back": func(w *watched, one *watch) {
			w.remove("")
			if one.look() {
				w.t.Error("look reports a removed folder as a change, want none")
			}
			w.write("headgate.yaml", "two")
			toldOf(w.t, one, w.folder)
		},
		"a folder that comes back with the one around it": func(w *watched, one *watch) {
			w.remove("..")
			one.look()
			w.write("headgate.yaml", "two")
			toldOf(w.t, one, filepath.Dir(w.folder))
		},
		"behind a link, where it comes back": func(w *watched, one *watch) {
			w.write("../real/headgate.yaml", "two")
			w.remove("headgate.yaml")
			w.link("../real/headgate.yaml", "headgate.yaml")
			one.look()
			w.remove("../real/headgate.yaml")
			one.look()
			w.write("../real/headgate.yaml", "three")
			toldOf(w.t, one, w.at("../real/headgate.yaml"))
		},
		"under another name, as a container may see it": func(w *watched, one *watch) {
			w.write("../elsewhere/x", "")
			w.must(os.Link(w.path, w.at("../elsewhere/headgate.yaml")))
			one.look()
			w.write("../elsewhere/headgate.yaml", "two")
			toldOf(w.t, one, w.path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := watchFolder(t, filepath.Join(t.TempDir(), "around", "conf"), 0)
			w.write("headgate.yaml", "one")
			one, err := newWatch(w.path)
			w.must(err)
			defer func() { w.must(one.events.Close()) }()
			one.follow(nil)
			steps(w, one)
			if !one.look() {
				t.Error("look reports no change after an event, want a change")
			}
		})
	}
}

// TestFilesAreMetBeforeTheLoad: a change adds the files that the new configuration names to the
// watch before the load. A file that appears during the load is a change afterwards.
func TestFilesAreMetBeforeTheLoad(t *testing.T) {
	w := watchFolder(t, t.TempDir(), 0)
	w.write("headgate.yaml", "version: 1\nrules: []\n")
	one, err := newWatch(w.path)
	w.must(err)
	defer func() { w.must(one.events.Close()) }()
	one.follow(nil)
	w.write("headgate.yaml", "version: 1\nrules: []\nidentity: {jwt: {keys: jwks.json}}\n")
	if !one.look() {
		t.Fatal("the configuration has not changed")
	}
	w.write("jwks.json", "keys") // At this point, a load would find that the file is missing.
	one.follow(nil)
	if !one.look() {
		t.Error("look does not report the new file, want a change")
	}
}

// TestWatchOfFilesThatTheTextNames: changed returns no files, but the text names one.
func TestWatchOfFilesThatTheTextNames(t *testing.T) {
	w := watchFolder(t, t.TempDir(), time.Hour)
	w.write("headgate.yaml", "version: 1\nrules: []\nidentity: {jwt: {keys: jwks.json}}\n")
	w.write("jwks.json", "keys")
	w.start()
	for end := time.Now().Add(deadline); ; {
		w.write("jwks.json", fmt.Sprint("other keys ", time.Now())) // A write before the watch has begun is not a change.
		select {
		case <-w.found:
			return
		case <-time.After(2 * readfile.Quiet):
		}
		if time.Now().After(end) {
			t.Fatal("no change reported for a file that the text names")
		}
	}
}

// TestWatchOfAPipe: the watch must not read a pipe, because it would take data from another reader,
// or block.
func TestWatchOfAPipe(t *testing.T) {
	if got, err := contentOf("/dev/zero", content{}); got.info != nil || !errors.Is(err, readfile.ErrNotRegular) {
		t.Errorf("got %+v, %v", got, err)
	}
}
