package etcd

import (
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// keyValue is a key at a revision.
type keyValue struct {
	mark

	key   string
	value []byte
	lease int64 // 0 without a lease
}

// mark identifies one write of a key: the revision that created the key, the number of writes
// since, and the revision of this write. The zero mark means a missing key.
type mark struct{ create, version, mod int64 }

func markOf(kv *keyValue) mark {
	if kv == nil {
		return mark{}
	}
	return kv.mark
}

// follows reports that no other write lies between two.
func (m mark) follows(before mark) bool {
	return m.create == before.create && m.version == before.version+1
}

// convert reads fields, because the keys and events of etcd's client have no getters before version 3.7.
func convert(kv *mvccpb.KeyValue) *keyValue {
	if kv == nil {
		return new(keyValue)
	}
	//nolint:protogetter // see above
	return &keyValue{
		key: string(kv.Key), value: kv.Value, lease: kv.Lease,
		mark: mark{kv.CreateRevision, kv.Version, kv.ModRevision},
	}
}

// convertEvent returns the key of an event, and reports whether it was deleted.
func convertEvent(e *clientv3.Event) (kv *keyValue, deleted bool) {
	return convert(e.Kv), e.Type == clientv3.EventTypeDelete //nolint:protogetter // see convert
}

func convertAll(kvs []*mvccpb.KeyValue) []*keyValue {
	all := make([]*keyValue, 0, len(kvs))
	for _, kv := range kvs {
		all = append(all, convert(kv))
	}
	return all
}

// answers gives the result of each read of a transaction.
func answers(t *clientv3.TxnResponse) [][]*keyValue {
	all := make([][]*keyValue, 0, len(t.Responses))
	for _, r := range t.Responses {
		all = append(all, convertAll(r.GetResponseRange().GetKvs()))
	}
	return all
}

// first gives the only key of a result, or nil.
func first(kvs []*keyValue) *keyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// history identifies a sequence of revisions. A cluster that has lost its data has another history.
type history struct {
	cluster  uint64
	revision int64
}

func historyOf(h *etcdserverpb.ResponseHeader) history {
	return history{h.GetClusterId(), h.GetRevision()}
}

// after reports that a read was answered from the history that was known when it was sent:
// revisions never decrease.
func (h history) after(known history) bool {
	return known.cluster == 0 || h.cluster == known.cluster && h.revision >= known.revision
}
