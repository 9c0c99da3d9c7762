package etcd

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/headgate/headgate/config/source"
)

// takeEvents groups the events of an answer by their revision, which is one transaction. An answer with
// Fragment may end within a transaction.
func (w *watching) takeEvents(r *etcdserverpb.WatchResponse) error {
	w.progress = 0
	for _, e := range r.GetEvents() {
		revision := e.GetKv().GetModRevision()
		if len(w.group) > 0 && w.group[0].GetKv().GetModRevision() != revision {
			if err := w.flush(); err != nil {
				return err
			}
		}
		if revision <= w.history.revision {
			return fmt.Errorf("etcd gave revision %d after revision %d", revision, w.history.revision)
		}
		if w.group = append(w.group, e); len(w.group) > 2*(w.config.MaxObjects+maxForeign) {
			return w.tooMany(int64(len(w.group)))
		}
	}
	if r.GetFragment() {
		return nil
	}
	return w.flush()
}

// flush gives the receiver one transaction.
func (w *watching) flush() error {
	if len(w.group) == 0 {
		return nil
	}
	var c source.Change
	for _, e := range w.group {
		key, err := w.keys.parse(e.GetKv().GetKey())
		switch {
		case err != nil && e.GetType() == mvccpb.DELETE:
		case err != nil:
			w.foreign.add(e.GetKv().GetKey(), err)
		case e.GetType() == mvccpb.DELETE:
			if w.contents.remove(key) {
				c.Deleted = append(c.Deleted, key)
			}
		default:
			c.Objects = append(c.Objects, object(key, e.GetKv()))
			w.contents.put(&c.Objects[len(c.Objects)-1])
		}
	}
	if n := len(w.contents.revisions); n > w.config.MaxObjects {
		w.read = false // The next session begins with a full read, when there are fewer objects.
		return w.tooMany(int64(n))
	}
	w.history.revision = w.group[0].GetKv().GetModRevision()
	w.group = nil
	if len(c.Objects)+len(c.Deleted) > 0 {
		c.Revision = w.contents.text()
		w.to.Changed(c)
	}
	w.reach(w.history.revision)
	return nil
}
