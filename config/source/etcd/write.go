package etcd

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/config/source"
)

// Get implements source.Writer.
func (s *Source) Get(ctx context.Context, key source.Key) (source.Object, error) {
	if err := key.Check(); err != nil {
		return source.Object{}, err
	}
	client, err := s.connection.get(ctx)
	if err != nil {
		return source.Object{}, s.fault("read", key, err)
	}
	r, err := client.Get(ctx, s.keys.object(key))
	if err != nil {
		s.connection.failed(client, err)
		return source.Object{}, s.fault("read", key, err)
	}
	if len(r.Kvs) == 0 {
		return source.Object{}, source.ErrNotFound
	}
	return object(key, r.Kvs[0]), nil
}

// Write implements source.Writer. After the change, it removes some of the oldest records beyond their bounds.
func (s *Source) Write(ctx context.Context, w source.Write) (revision int64, err error) {
	if w.Record.Time.IsZero() {
		w.Record.Time = time.Now()
	}
	if err := w.Check(); err != nil {
		return 0, err
	}
	record, err := s.putRecord(&w)
	if err != nil {
		return 0, err
	}
	client, err := s.connection.get(ctx)
	if err != nil {
		return 0, s.fault("written", w.Key, err)
	}
	key := s.keys.object(w.Key)
	change := clientv3.OpPut(key, w.Text)
	if w.Delete {
		change = clientv3.OpDelete(key)
	}
	r, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", w.Revision)).
		Then(change, record).
		Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).Commit()
	switch {
	case err != nil && !isRefusal(err):
		return 0, fmt.Errorf("%w: the change may have been made: read the object to know", s.fault("written", w.Key, err))
	case err != nil:
		s.connection.failed(client, err)
		return 0, s.fault("written", w.Key, err)
	case !r.Succeeded:
		return 0, &source.ConflictError{Key: w.Key, Revision: foundRevision(r), Expected: w.Revision}
	}
	s.prune(ctx, client)
	if w.Delete {
		return 0, nil
	}
	return r.Header.GetRevision(), nil
}

// foundRevision gives the revision that a failed comparison has found; 0 if the object does not exist.
func foundRevision(r *clientv3.TxnResponse) int64 {
	for _, one := range r.Responses {
		if found, ok := one.GetResponse().(*etcdserverpb.ResponseOp_ResponseRange); ok && len(found.ResponseRange.GetKvs()) > 0 {
			return found.ResponseRange.GetKvs()[0].GetModRevision()
		}
	}
	return 0
}

// fault adds the object and the place to an error.
func (s *Source) fault(what string, key source.Key, err error) error {
	return fmt.Errorf("config/source/etcd: %s cannot be %s in %s: %w%s", key, what, s.config, err, advice(err))
}
