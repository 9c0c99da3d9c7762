package etcd

import (
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/internal/config/source"
)

// auditSection has the records. Its keys are before those of all objects in etcd's order.
const auditSection = "audit/"

// keys makes and reads the keys below a prefix.
type keys struct{ prefix string }

// viewSection has the keys that each write through Headgate of one kind changes. They come before the records in etcd's order,
// so that no instance follows them.
const viewSection = "_view/"

// view gives the key that each write of the kind changes.
func (k keys) view(kind source.Kind) string {
	if kind == source.Customer {
		return k.prefix + viewSection + source.Customer.Section()
	}
	return k.prefix + viewSection + "rules-plans"
}

func (k keys) object(key source.Key) string { return k.prefix + key.String() }
func (k keys) audit() string                { return k.prefix + auditSection }

// first and end bound the range of all objects: everything below the prefix that comes after the records. The
// range has keys that are no objects, so that they can be reported.
func (k keys) first() string { return clientv3.GetPrefixRangeEnd(k.audit()) }
func (k keys) end() string   { return clientv3.GetPrefixRangeEnd(k.prefix) }

// parse reads the key of an object.
func (k keys) parse(key []byte) (source.Key, error) {
	rest, found := strings.CutPrefix(string(key), k.prefix)
	if !found {
		return source.Key{}, fmt.Errorf("config/source/etcd: etcd gave the key %.300q, which is not below %s", key, k.prefix)
	}
	return source.ParseKey(rest)
}

// object converts a value. The receiver refuses a text of more than source.MaxText bytes.
func object(key source.Key, kv *mvccpb.KeyValue) source.Object {
	text := kv.GetValue()
	return source.Object{Key: key, Text: string(text[:min(len(text), source.MaxText+1)]), Revision: kv.GetModRevision()}
}
