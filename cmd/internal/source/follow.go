// Package source is the room of the source of rules, plans and customers in the daemon: the component that follows it, with its
// status, its metrics and its lines of the audit log. The folders below have the kinds of sources, and package open opens them.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// partSource is the part of a reload that takes objects from the source.
const partSource = "source"

// firstObjects bounds how long the start waits for the source's first answer.
const firstObjects = 5 * time.Second

// Follower is the component that follows the source of rules, plans and customers.
type Follower struct {
	component.Defaults

	// overlays take what the source has of changes of the run time.
	overlays []overlay.Follower

	host     *component.Host
	instance component.Configuration
	quotas   component.Component
	admin    config.Admin // as the instance started with it
	settings *config.Source
	source   source.Source
	// table, revision and at are guarded by the lock of instance.
	table    *objects.Table
	revision string
	at       int64 // The position of the last change.
	heard    bool  // The source itself has given its objects, not only the cache. The lock of instance guards it.
	state    objects.State
	follower *objects.Follower
	cache    *objects.Writer // nil without a cache
	// cached is what the cache had at the start, until the source answers; nil without it. The lock of instance guards it.
	cached   *objects.Cached
	answered chan struct{} // Closed when objects are in force, or a cache cannot help.
	first    sync.Once
	// interrupt ends the check of changes, which may take seconds, for a stop.
	running   context.Context //nolint:containedctx // because the methods of an objects.Sink have none.
	interrupt context.CancelFunc
}

// New opens the source of a configuration. It connects when it is started. quotas is the component that takes a change of customers
// alone.
func New(host *component.Host, instance component.Configuration, c *config.Config, quotas component.Component) (*Follower, error) {
	from, err := open.Source(c.Source)
	if err != nil {
		return nil, c.Located(err)
	}
	return From(from, host, instance, c, quotas)
}

// From is New for a source that is open.
func From(
	from source.Source, host *component.Host, instance component.Configuration, c *config.Config, quotas component.Component,
) (*Follower, error) {
	in, err := config.NewObjects(c)
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	f := &Follower{
		host: host, instance: instance, quotas: quotas, admin: c.Admin, settings: c.Source, source: from, answered: make(chan struct{}),
	}
	f.running, f.interrupt = context.WithCancel(context.Background())
	f.table = objects.NewTable(in, f.put)
	return f, nil
}

// Start follows the source, and waits for its first answer. Without one, the instance serves what the cache has. The
// cache is read in any case: it has the former versions of objects that are faulty in the source now.
func (f *Follower) Start(ctx context.Context) (func(), error) {
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
func (f *Follower) warnOpen() { f.WarnOfListener(&f.admin) }

// WarnOfListener is warnOpen for a section admin of a reload.
func (f *Follower) WarnOfListener(admin *config.Admin) {
	if f.Writer() == nil || admin.Listen == "" || admin.Auth != 0 || f.host.Probe {
		return
	}
	f.host.Log.Warn("every program that reaches admin.listen can change the rules, plans and customers of all instances, "+
		"because admin.auth is none: set admin.auth to token", "listener", "admin.listen", "address", admin.Listen,
		"kind", f.settings.Kind())
}

// Keeps lets the source keep what operators change at run time, for the components that have such changes. The wiring calls it once,
// before the start.
func (f *Follower) Keeps(components []component.Component) {
	for _, c := range components {
		if kept, is := c.(overlay.Follower); is {
			kept.KeptBy(f)
			f.overlays = append(f.overlays, kept)
		}
	}
}

func (f *Follower) answer() { f.first.Do(func() { close(f.answered) }) }

// Changed implements objects.Sink.
func (f *Follower) Changed(changes []source.Change) {
	i := f.instance
	i.Lock()
	defer i.Unlock()
	defer f.answer()
	if i.Stopping() {
		return
	}
	last := &changes[len(changes)-1]
	f.revision, f.cached, f.heard = last.Revision, nil, true
	modes := takeModes(changes)
	f.apply(changes)
	for _, o := range f.overlays {
		for i := range modes {
			o.Follow(&modes[i])
		}
	}
	f.at = last.Position
}

// takeModes moves the modes out of changes: they are no part of the configuration.
func takeModes(changes []source.Change) []source.Change {
	modes := make([]source.Change, len(changes))
	for i := range changes {
		from, to := &changes[i], &modes[i]
		to.All = from.All
		from.Objects = slices.DeleteFunc(from.Objects, func(o source.Object) bool {
			if o.Kind == source.Mode {
				to.Objects = append(to.Objects, o)
			}
			return o.Kind == source.Mode
		})
		from.Deleted = slices.DeleteFunc(from.Deleted, func(k source.Key) bool {
			if k.Kind == source.Mode {
				to.Deleted = append(to.Deleted, k)
			}
			return k.Kind == source.Mode
		})
	}
	return modes
}

// apply takes changes, and tries what is held back. The caller holds the lock of instance.
func (f *Follower) apply(changes []source.Change) {
	began := time.Now()
	former := f.table.Objects()
	begun := f.table.Apply(f.running, began, changes...)
	if f.instance.Stopping() {
		return
	}
	f.state.InForce(f.table, former, f.revision, len(begun), time.Now())
	f.logHeld(begun)
	f.noteLacks()
	f.auditFollowed(former, f.table.Objects())
	f.remember(former, began)
	f.host.Log.Debug("changes of the source were applied", "changes", len(changes), "revision", f.revision,
		"held_back", len(begun), "took", time.Since(began).String())
	if f.cache != nil && f.table.Objects().Known() {
		f.cache.Changed()
	}
}

// maxLoggedHeld bounds the changes of one batch that are logged.
const maxLoggedHeld = 10

// logHeld logs changes that are held back, and says why.
func (f *Follower) logHeld(begun []objects.Held) {
	log := f.host.Log
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

// noteLacks notes, and logs once, why nothing is in force although the source has answered. The caller holds the lock of instance.
func (f *Follower) noteLacks() {
	text := ""
	if lacks := f.table.Lacks(); len(lacks) > 0 && f.heard {
		text = lacks[0].Headline()
	}
	if f.state.Lacks(text) && text != "" {
		f.host.Log.Error("nothing of the source is in force, because it lacks an object that the file needs: write the object",
			"kind", f.settings.Kind(), "error", text)
	}
}

// Reached implements objects.Sink.
func (f *Follower) Reached(at time.Time) {
	if s := f.state.Get(); s.Failure != "" {
		f.host.Log.Info("the source answers again", "kind", f.settings.Kind())
	}
	f.state.Reached(at)
	f.answer()
	f.tryMore()
}

// tryMore tries changes for which the last one had no time.
func (f *Follower) tryMore() {
	f.instance.Lock()
	defer f.instance.Unlock()
	if f.table.Due() && !f.instance.Stopping() {
		f.apply(nil)
	}
}

// Failed implements objects.Sink.
func (f *Follower) Failed(err error) {
	if f.state.Failed(err, time.Now()) {
		f.host.Log.Error("the source cannot be read: what is in force stays in force", "kind", f.settings.Kind(),
			"error", err)
	}
	f.serveCache()
}

// readCache puts the objects of the cache in force. They do not count as known until serveCache.
func (f *Follower) readCache() {
	i := f.instance
	i.Lock()
	defer i.Unlock()
	cached, err := objects.ReadCache(f.settings.Cache, f.settings.Place())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		if f.state.CacheWritten(err, time.Time{}) {
			f.host.Log.Error("the cache of the source is not used: only the source itself can give objects", "error", err)
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
func (f *Follower) serveCache() {
	i := f.instance
	i.Lock()
	defer i.Unlock()
	cached := f.cached
	if f.cached = nil; cached == nil || i.Stopping() {
		return
	}
	f.state.Cached(cached)
	f.state.Loaded(f.table.Objects(), f.table.Held())
	f.host.Log.Warn("serving from the cache of the source, which cannot be read",
		"age", time.Since(cached.Written).Round(time.Second).String(), "revision", cached.Revision, "objects", len(cached.Objects))
	f.answer()
}

// writeCache writes what is in force.
func (f *Follower) writeCache(rest func()) {
	i := f.instance
	i.Lock()
	in, revision := f.table.Objects(), f.revision
	i.Unlock()
	now, n := time.Now(), 0
	for _, kind := range source.Kinds() {
		n += in.Len(kind)
	}
	err := objects.WriteCache(f.settings.Cache, &objects.Content{
		Place: f.settings.Place(), Revision: revision, Written: now, Len: n, All: in.Sourced, Rest: rest,
	})
	if f.state.CacheWritten(err, now) && err != nil {
		f.host.Log.Error("the cache of the source was not written", "error", err)
	}
}

// put puts objects in force. The caller holds the lock of instance.
func (f *Follower) put(next *config.Objects) error {
	base := next.Config()
	c, err := f.instance.WithDomains(base)
	if err != nil {
		return err
	}
	var only []component.Component
	if next.SameRules(f.table.Objects()) {
		only = append(only, f.quotas)
	}
	return f.instance.Put(partSource, base, c, only...)
}

// Drain ends the following, and writes the cache, beside the drain of the other components. No stop waits for a source that parses a
// large document, nor for a slow disk: see component.Host.EndsLater.
func (f *Follower) Drain(context.Context) error {
	f.interrupt()
	if f.cache != nil {
		f.host.EndsLater("the cache of the source", f.cache.Stop)
	}
	if f.follower != nil {
		f.host.EndsLater("the source", func() {
			if err := f.follower.Stop(); err != nil {
				f.host.Log.Warn("the source was not closed cleanly", "kind", f.settings.Kind(), "error", err)
			}
		})
	}
	return nil
}

// Ready implements component.Component.
func (f *Follower) Ready() error {
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

// Known reports whether the objects of the source are known.
func (f *Follower) Known() bool { return f.state.Get().Known }

// Interrupt ends a check of many changes, for a stop.
func (f *Follower) Interrupt() { f.interrupt() }
