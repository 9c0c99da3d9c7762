package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// partSource is the part of a reload that takes objects from the source.
const partSource = "source"

// firstObjects bounds how long the start waits for the source's first answer.
const firstObjects = 5 * time.Second

// sourceFollower is the component that follows the source of rules, plans and customers.
type sourceFollower struct {
	defaults

	instance *Instance
	settings *config.Source
	source   source.Source
	// table, revision and at are guarded by Instance.reloading.
	table    *objects.Table
	revision string
	at       int64 // The position of the last change.
	heard    bool  // The source itself has given its objects, not only the cache. Instance.reloading guards it.
	state    objects.State
	follower *objects.Follower
	cache    *objects.Writer // nil without a cache
	// cached is what the cache had at the start, until the source answers; nil without it. Instance.reloading guards it.
	cached   *objects.Cached
	answered chan struct{} // Closed when objects are in force, or a cache cannot help.
	first    sync.Once
	// interrupt ends the check of changes, which may take seconds, for a stop.
	running   context.Context //nolint:containedctx // because the methods of an objects.Sink have none.
	interrupt context.CancelFunc
}

// newSourceFollower opens the source of a configuration. It connects when it is started.
func newSourceFollower(i *Instance) (*sourceFollower, error) {
	settings := i.options.Config.Source
	from, err := open.Source(settings)
	if err != nil {
		return nil, i.options.Config.Located(err)
	}
	in, err := config.NewObjects(i.options.Config)
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	f := &sourceFollower{instance: i, settings: settings, source: from, answered: make(chan struct{})}
	f.running, f.interrupt = context.WithCancel(context.Background())
	f.table = objects.NewTable(in, f.put)
	return f, nil
}

// Start follows the source, and waits for its first answer. Without one, the instance serves what the cache has. The
// cache is read in any case: it has the former versions of objects that are faulty in the source now.
func (f *sourceFollower) Start(ctx context.Context) (func(), error) {
	if f.settings.Cache != "" {
		f.readCache()
		f.cache = objects.NewWriter(f.writeCache)
	}
	f.warnOpen()
	f.follower = objects.Follow(f.source, f)
	patience := time.NewTimer(firstObjects)
	defer patience.Stop()
	select {
	case <-f.answered:
	case <-patience.C:
		f.serveCache()
	case <-ctx.Done():
	}
	return nil, nil //nolint:nilnil // There is nothing to begin.
}

// warnOpen warns of an admin listener that lets everyone on this machine change what the whole fleet has.
func (f *sourceFollower) warnOpen() { f.warnOfListener(&f.instance.options.Config.Admin) }

func (f *sourceFollower) warnOfListener(admin *config.Admin) {
	if f.writer() == nil || admin.Listen == "" || admin.Auth != 0 || f.instance.options.probe {
		return
	}
	f.instance.options.Log.Warn("every program that reaches admin.listen can change the rules, plans and customers of all instances, "+
		"because admin.auth is none: set admin.auth to token", "listener", "admin.listen", "address", admin.Listen,
		"kind", f.settings.Kind())
}

func (f *sourceFollower) answer() { f.first.Do(func() { close(f.answered) }) }

// Changed implements objects.Sink.
func (f *sourceFollower) Changed(changes []source.Change) {
	i := f.instance
	i.reloading.Lock()
	defer i.reloading.Unlock()
	defer f.answer()
	if i.draining.Load() {
		return
	}
	last := &changes[len(changes)-1]
	f.revision, f.cached, f.heard = last.Revision, nil, true
	f.apply(changes)
	f.at = last.Position
}

// apply takes changes, and tries what is held back. The caller holds Instance.reloading.
func (f *sourceFollower) apply(changes []source.Change) {
	began := time.Now()
	former := f.table.Objects()
	begun := f.table.Apply(f.running, began, changes...)
	if f.instance.draining.Load() {
		return
	}
	f.state.InForce(f.table, former, f.revision, len(begun), time.Now())
	f.logHeld(begun)
	f.noteLacks()
	f.auditFollowed(former, f.table.Objects())
	f.instance.options.Log.Debug("changes of the source were applied", "changes", len(changes), "revision", f.revision,
		"held_back", len(begun), "took", time.Since(began).String())
	if f.cache != nil && f.table.Objects().Known() {
		f.cache.Changed()
	}
}

// maxLoggedHeld bounds the changes of one batch that are logged.
const maxLoggedHeld = 10

// logHeld logs changes that are held back, and says why.
func (f *sourceFollower) logHeld(begun []objects.Held) {
	log := f.instance.options.Log
	for n := range begun {
		h := &begun[n]
		if n == maxLoggedHeld {
			log.Error("further changes of the source are held back: headgate ctl status lists them", "changes", len(begun)-n)
			return
		}
		s := heldStatus(h)
		log.Error("a change of the source is held back: the former versions stay in force", "objects", s.Objects,
			"at", s.At, "problem", s.Problem, "fix", s.Fix)
	}
}

// noteLacks notes, and logs once, why nothing is in force although the source has answered. The caller holds Instance.reloading.
func (f *sourceFollower) noteLacks() {
	text := ""
	if lacks := f.table.Lacks(); len(lacks) > 0 && f.heard {
		text = lacks[0].Headline()
	}
	if f.state.Lacks(text) && text != "" {
		f.instance.options.Log.Error("nothing of the source is in force, because it lacks an object that the file needs: write the object",
			"kind", f.settings.Kind(), "error", text)
	}
}

// Reached implements objects.Sink.
func (f *sourceFollower) Reached(at time.Time) {
	if s := f.state.Get(); s.Failure != "" {
		f.instance.options.Log.Info("the source answers again", "kind", f.settings.Kind())
	}
	f.state.Reached(at)
	f.answer()
	f.tryMore()
}

// tryMore tries changes for which the last one had no time.
func (f *sourceFollower) tryMore() {
	f.instance.reloading.Lock()
	defer f.instance.reloading.Unlock()
	if f.table.Due() && !f.instance.draining.Load() {
		f.apply(nil)
	}
}

// Failed implements objects.Sink.
func (f *sourceFollower) Failed(err error) {
	if f.state.Failed(err, time.Now()) {
		f.instance.options.Log.Error("the source cannot be read: what is in force stays in force", "kind", f.settings.Kind(),
			"error", err)
	}
	f.serveCache()
}

// readCache puts the objects of the cache in force. They do not count as known until serveCache.
func (f *sourceFollower) readCache() {
	i := f.instance
	i.reloading.Lock()
	defer i.reloading.Unlock()
	cached, err := objects.ReadCache(f.settings.Cache, f.settings.Place())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		if f.state.CacheWritten(err, time.Time{}) {
			i.options.Log.Error("the cache of the source is not used: only the source itself can give objects", "error", err)
		}
		return
	}
	f.logHeld(f.table.Apply(f.running, time.Now(), source.Change{All: true, Objects: cached.Objects, Revision: cached.Revision}))
	if f.table.Objects().Known() {
		f.cached, f.revision = cached, cached.Revision
	}
	if from, remembers := f.source.(interface{ Had(kind source.Kind, n int) }); remembers {
		for _, kind := range source.Kinds() {
			from.Had(kind, f.table.Objects().Len(kind))
		}
	}
}

// serveCache counts the objects of the cache as known, if the source has not answered.
func (f *sourceFollower) serveCache() {
	i := f.instance
	i.reloading.Lock()
	defer i.reloading.Unlock()
	cached := f.cached
	if f.cached = nil; cached == nil || i.draining.Load() {
		return
	}
	f.state.Cached(cached)
	f.state.Loaded(f.table.Objects(), f.table.Held())
	i.options.Log.Warn("serving from the cache of the source, which cannot be read",
		"age", time.Since(cached.Written).Round(time.Second).String(), "revision", cached.Revision, "objects", len(cached.Objects))
	f.answer()
}

// writeCache writes what is in force.
func (f *sourceFollower) writeCache(rest func()) {
	i := f.instance
	i.reloading.Lock()
	in, revision := f.table.Objects(), f.revision
	i.reloading.Unlock()
	now, n := time.Now(), 0
	for _, kind := range source.Kinds() {
		n += in.Len(kind)
	}
	err := objects.WriteCache(f.settings.Cache, &objects.Content{
		Place: f.settings.Place(), Revision: revision, Written: now, Len: n, All: in.Sourced, Rest: rest,
	})
	if f.state.CacheWritten(err, now) && err != nil {
		i.options.Log.Error("the cache of the source was not written", "error", err)
	}
}

// put puts objects in force. The caller holds Instance.reloading.
func (f *sourceFollower) put(next *config.Objects) error {
	i := f.instance
	base := next.Config()
	c, err := base.WithDomains(i.sourced)
	if err != nil {
		return err
	}
	if next.SameRules(f.table.Objects()) {
		err = i.apply([]Component{quotasOnly{i.rules}}, c)
	} else {
		err = i.apply(i.components, c)
	}
	if errors.Is(err, errStopping) {
		return err
	}
	if i.reloadEnded(partSource, err); err != nil {
		return err
	}
	i.base = base
	i.config.Store(c)
	return nil
}

// Drain ends the following, and writes the cache, beside the drain of the other components. No stop waits for a source that parses a
// large document, nor for a slow disk: see Instance.endsLater.
func (f *sourceFollower) Drain(context.Context) error {
	f.interrupt()
	if f.cache != nil {
		f.instance.endsLater("the cache of the source", f.cache.Stop)
	}
	if f.follower != nil {
		f.instance.endsLater("the source", func() {
			if err := f.follower.Stop(); err != nil {
				f.instance.options.Log.Warn("the source was not closed cleanly", "kind", f.settings.Kind(), "error", err)
			}
		})
	}
	return nil
}

// Ready implements Component.
func (f *sourceFollower) Ready() error {
	if s := f.state.Get(); !s.Known {
		if s.Failure != "" {
			return fmt.Errorf("the source has given no objects yet: %s", s.Failure)
		}
		if s.Lacks != "" {
			return fmt.Errorf("the source lacks an object that the file needs: %s", s.Lacks)
		}
		return errors.New("the source has given no objects yet")
	}
	return nil
}

// hasObjects reports whether the objects of the source are known, or there is no source.
func (i *Instance) hasObjects() bool { return i.source == nil || i.source.state.Get().Known }
