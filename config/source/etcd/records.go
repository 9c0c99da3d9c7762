package etcd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/config/source"
)

const (
	// pruneAtOnce bounds the records that one write removes.
	pruneAtOnce = 100
	// recordPage bounds the records of one answer: the largest has about 800 KiB.
	recordPage = 32
)

// record gives the key of a record. Keys are in the order of the time: 19 digits hold all of it. The random part keeps records of one
// nanosecond apart. The object in the key finds its records without their values.
func (k keys) record(r *source.Record) string {
	return fmt.Sprintf("%s%019d-%s/%s", k.audit(), r.Time.UnixNano(), rand.Text()[:13], r.Object)
}

// recordTime reads the time of a record's key.
func (k keys) recordTime(key []byte) (time.Time, bool) {
	digits, _, found := strings.Cut(strings.TrimPrefix(string(key), k.audit()), "-")
	nanoseconds, err := strconv.ParseInt(digits, 10, 64)
	return time.Unix(0, nanoseconds), found && err == nil
}

// recordObject reads the object of a record's key.
func (k keys) recordObject(key []byte) string {
	_, object, _ := strings.Cut(strings.TrimPrefix(string(key), k.audit()), "/")
	return object
}

// putRecord gives the operation that writes the record of a change.
func (s *Source) putRecord(w *source.Write) (clientv3.Op, error) {
	if w.Record.Object == "" {
		w.Record.Object = w.Key.String()
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // Escaped text would be longer.
	if err := encoder.Encode(w.Record); err != nil {
		return clientv3.Op{}, fmt.Errorf("config/source/etcd: the record of %s: %w", w.Key, err)
	}
	return clientv3.OpPut(s.keys.record(&w.Record), text.String()), nil
}

// prune removes some of the oldest records beyond the bounds. It is not a part of the change: a failure is logged,
// and the next change prunes again.
func (s *Source) prune(ctx context.Context, client *clientv3.Client) {
	oldest, err := client.Get(ctx, s.keys.audit(), clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(pruneAtOnce))
	if err == nil {
		if n := s.expired(oldest, time.Now()); n > 0 {
			end := string(oldest.Kvs[n-1].GetKey()) + "\x00"
			_, err = client.Delete(ctx, s.keys.audit(), clientv3.WithRange(end))
		}
	}
	if err != nil && ctx.Err() == nil {
		s.config.Logger.Warn("old records of changes cannot be removed from etcd: the next change tries again", "error", err)
	}
}

// expired gives how many of the oldest records are beyond the bounds.
func (s *Source) expired(oldest *clientv3.GetResponse, now time.Time) int {
	n := max(0, int(min(oldest.Count-int64(s.config.MaxRecords), int64(len(oldest.Kvs)))))
	for n < len(oldest.Kvs) {
		if at, ok := s.keys.recordTime(oldest.Kvs[n].GetKey()); ok && now.Sub(at) <= source.RecordAge {
			break
		}
		n++
	}
	return n
}

// Records implements source.Writer.
func (s *Source) Records(ctx context.Context, object string, n int) ([]source.Record, error) {
	client, err := s.connection.get(ctx)
	if err != nil {
		return nil, s.recordsFault(err)
	}
	var found []source.Record
	n = min(n, s.config.MaxRecords)
	for end := clientv3.GetPrefixRangeEnd(s.keys.audit()); len(found) < n && end != ""; {
		var names []string
		if names, end, err = s.recordsBefore(ctx, client, end, object); err != nil {
			return nil, s.recordsFault(err)
		}
		for len(names) > 0 && len(found) < n {
			some := min(recordPage, len(names), n-len(found))
			if found, err = readRecords(ctx, client, names[:some], found); err != nil {
				return nil, s.recordsFault(err)
			}
			names = names[some:]
		}
	}
	return found, nil
}

// recordsBefore gives the keys of an object's records before a key, the newest first, and the key for the next call.
func (s *Source) recordsBefore(ctx context.Context, client *clientv3.Client, end, object string) (names []string, next string, err error) {
	r, err := client.Get(ctx, s.keys.audit(), clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(maxPage),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	if err != nil {
		return nil, "", err
	}
	for _, kv := range r.Kvs {
		if object == "" || s.keys.recordObject(kv.GetKey()) == object {
			names = append(names, string(kv.GetKey()))
		}
	}
	if r.More && len(r.Kvs) > 0 {
		next = string(r.Kvs[len(r.Kvs)-1].GetKey())
	}
	return names, next, nil
}

// readRecords appends records by their keys. Records that were pruned meanwhile, and values that are no
// records, are left out.
func readRecords(ctx context.Context, client *clientv3.Client, names []string, to []source.Record) ([]source.Record, error) {
	var gets []clientv3.Op
	for _, name := range names {
		gets = append(gets, clientv3.OpGet(name))
	}
	r, err := client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, err
	}
	for _, one := range r.Responses {
		for _, kv := range one.GetResponseRange().GetKvs() {
			var record source.Record
			if json.Unmarshal(kv.GetValue(), &record) == nil {
				to = append(to, record)
			}
		}
	}
	return to, nil
}

func (s *Source) recordsFault(err error) error {
	return fmt.Errorf("config/source/etcd: the records cannot be read from %s: %w%s", s.config, err, advice(err))
}
