package etcd

import (
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// keyValue is a key as it is at some revision.
type keyValue struct {
	mark

	key   string
	value []byte
	lease int64 // 0: none
}

// mark tells one writing of a key from the others, by the revision that created the key,
// how often it has been written since, and the revision of this writing. The zero mark
// is that of no key.
type mark struct{ create, version, mod int64 }

func markOf(kv *keyValue) mark {
	if kv == nil {
		return mark{}
	}
	return kv.mark
}

// follows says that no other writing lies between two.
func (m mark) follows(before mark) bool {
	return m.create == before.create && m.version == before.version+1
}

func convert(kv *mvccpb.KeyValue) *keyValue {
	return &keyValue{
		key: string(kv.GetKey()), value: kv.GetValue(), lease: kv.GetLease(),
		mark: mark{kv.GetCreateRevision(), kv.GetVersion(), kv.GetModRevision()},
	}
}

func convertAll(kvs []*mvccpb.KeyValue) []*keyValue {
	all := make([]*keyValue, 0, len(kvs))
	for _, kv := range kvs {
		all = append(all, convert(kv))
	}
	return all
}

// answers gives what each read of a transaction has found.
func answers(t *clientv3.TxnResponse) [][]*keyValue {
	all := make([][]*keyValue, 0, len(t.Responses))
	for _, r := range t.Responses {
		all = append(all, convertAll(r.GetResponseRange().GetKvs()))
	}
	return all
}

// first gives the key that was asked for, or nil when it is not there.
func first(kvs []*keyValue) *keyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// history tells one line of revisions from another: that of a cluster which has lost
// its data, or of another cluster.
type history struct {
	cluster  uint64
	revision int64
}

func historyOf(h *etcdserverpb.ResponseHeader) history {
	return history{h.GetClusterId(), h.GetRevision()}
}

// after says that one read was answered from the same line as what was known when it
// was sent: revisions never go back.
func (h history) after(known history) bool {
	return known.cluster == 0 || h.cluster == known.cluster && h.revision >= known.revision
}
