package etcd

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/headgate/headgate/internal/config/source"
)

// event is the change of one object.
type event struct {
	source.Key

	kv      *mvccpb.KeyValue
	deleted bool
}

// takeEvents groups the events of an answer by their revision, which is one transaction. An answer with
// Fragment may end within a transaction.
func (w *watching) takeEvents(r *etcdserverpb.WatchResponse) error {
	w.progress = 0
	for _, e := range r.GetEvents() {
		revision := e.GetKv().GetModRevision()
		if w.groupAt != 0 && w.groupAt != revision {
			if err := w.flush(); err != nil {
				return err
			}
		}
		if revision <= w.history.revision {
			return fmt.Errorf("etcd gave revision %d after revision %d", revision, w.history.revision)
		}
		w.groupAt = revision
		w.addEvent(e)
		if err := w.checkBounds(len(w.group)/2, w.groupBytes); err != nil { // A transaction may replace all objects.
			return w.aboveBound(err)
		}
	}
	if r.GetFragment() {
		return nil
	}
	return w.flush()
}

// addEvent adds an event to the transaction. Keys that are no objects are not kept: a transaction may delete any
// number of them.
func (w *watching) addEvent(e *mvccpb.Event) {
	deleted := e.GetType() == mvccpb.DELETE
	key, err := w.keys.parse(e.GetKv().GetKey())
	switch {
	case err == nil:
		w.group = append(w.group, event{key, e.GetKv(), deleted})
		w.groupBytes += len(e.GetKv().GetValue())
	case !deleted:
		w.foreign.add(e.GetKv().GetKey(), err)
	}
}

// aboveBound ends the watch. The next session begins with a full read: a watch would find the same changes again.
func (w *watching) aboveBound(err error) error {
	w.read = false
	return err
}

// flush gives the receiver one transaction.
func (w *watching) flush() error {
	if w.groupAt == 0 {
		return nil
	}
	var c source.Change
	for _, e := range w.group {
		if !e.deleted {
			c.Objects = append(c.Objects, object(e.Key, e.kv))
			w.contents.put(&c.Objects[len(c.Objects)-1])
		} else if w.contents.remove(e.Key) {
			c.Deleted = append(c.Deleted, e.Key)
		}
	}
	if err := w.checkBounds(len(w.contents.versions), w.contents.bytes); err != nil {
		return w.aboveBound(err)
	}
	w.history.revision = w.groupAt
	w.group, w.groupBytes, w.groupAt = nil, 0, 0
	if len(c.Objects)+len(c.Deleted) > 0 {
		c.Revision, c.Position = w.contents.text(), w.history.revision
		w.to.Changed(c)
	}
	w.reach(w.history.revision)
	return nil
}
