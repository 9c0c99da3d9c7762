package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/internal/config/source"
)

// Get implements source.Writer.
func (s *Source) Get(ctx context.Context, key source.Key) (source.Object, error) {
	if err := key.Check(); err != nil {
		return source.Object{}, err
	}
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), s.config.Timeout)
	defer cancel()
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

// View implements source.Writer.
func (s *Source) View(ctx context.Context) (source.View, error) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), s.config.Timeout)
	defer cancel()
	client, err := s.connection.get(ctx)
	if err != nil {
		return source.View{}, s.viewFault(err)
	}
	r, err := client.Txn(ctx).Then(clientv3.OpGet(s.keys.view(source.Plan)), clientv3.OpGet(s.keys.view(source.Customer))).Commit()
	if err != nil {
		s.connection.failed(client, err)
		return source.View{}, s.viewFault(err)
	}
	v := source.View{RulesAndPlans: revisionIn(r, 0), Customers: revisionIn(r, 1)}
	v.Position = max(v.RulesAndPlans, v.Customers)
	return v, nil
}

// Write implements source.Writer. After the change, it removes some of the oldest records beyond their bounds.
func (s *Source) Write(ctx context.Context, w source.Write) (revision int64, err error) {
	if w.Record.Time.IsZero() {
		w.Record.Time = time.Now()
	}
	if err := w.Check(); err != nil {
		return 0, err
	}
	record, size, err := s.putRecord(&w)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), s.config.Timeout)
	defer cancel()
	client, err := s.connection.get(ctx)
	if err != nil {
		return 0, s.fault("written", w.Key, err)
	}
	conditions, found := s.conditions(&w)
	r, err := client.Txn(ctx).If(conditions...).Then(s.change(&w), record, clientv3.OpPut(s.keys.view(w.Kind), "")).Else(found...).Commit()
	switch {
	case err != nil && !isRefusal(err):
		s.connection.failed(client, err)
		return 0, fmt.Errorf("%w: %w", s.fault("written", w.Key, err), source.ErrUnknownResult)
	case err != nil:
		s.connection.failed(client, err)
		return 0, s.fault("written", w.Key, err)
	case !r.Succeeded:
		return 0, refused(r, &w)
	}
	s.prune(ctx, client, string(record.KeyBytes()), size)
	if w.Delete {
		return 0, nil
	}
	return r.Header.GetRevision(), nil
}

func (s *Source) change(w *source.Write) clientv3.Op {
	if w.Delete {
		return clientv3.OpDelete(s.keys.object(w.Key))
	}
	return clientv3.OpPut(s.keys.object(w.Key), w.Text)
}

// conditions gives those of a write, and the reads that tell which of them has failed: refused knows their order.
func (s *Source) conditions(w *source.Write) (all []clientv3.Cmp, found []clientv3.Op) {
	key := s.keys.object(w.Key)
	all = append(all, clientv3.Compare(clientv3.ModRevision(key), "=", w.Revision))
	found = append(found, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	for _, need := range w.Needs {
		key := s.keys.object(need)
		all = append(all, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
		found = append(found, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	}
	if v := w.View; v != nil {
		all = append(all, clientv3.Compare(clientv3.ModRevision(s.keys.view(source.Plan)), "=", v.RulesAndPlans))
		if !v.WithoutCustomers {
			all = append(all, clientv3.Compare(clientv3.ModRevision(s.keys.view(source.Customer)), "=", v.Customers))
		}
	}
	return all, found
}

// refused tells which condition of a write has failed.
func refused(r *clientv3.TxnResponse, w *source.Write) error {
	if has := revisionIn(r, 0); has != w.Revision {
		return &source.ConflictError{Key: w.Key, Revision: has, Expected: w.Revision}
	}
	for i, need := range w.Needs {
		if revisionIn(r, i+1) == 0 {
			return &source.MissingError{Key: need}
		}
	}
	return source.ErrStale
}

// revisionIn gives the revision of the key that read i of an answer has; 0 if the key does not exist, or if a wrong server has left the
// read out.
func revisionIn(r *clientv3.TxnResponse, i int) int64 {
	if i >= len(r.Responses) {
		return 0
	}
	if kvs := r.Responses[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0].GetModRevision()
	}
	return 0
}

func (s *Source) viewFault(err error) error {
	return fmt.Errorf("config/source/etcd: the last writes cannot be read from %s: %w%s", s.config, err, s.connection.advice(err))
}

// fault adds the object and the place to an error.
func (s *Source) fault(what string, key source.Key, err error) error {
	return fmt.Errorf("config/source/etcd: %s cannot be %s in %s: %w%s", key, what, s.config, err, s.connection.advice(err))
}
