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

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// pruneAtOnce bounds the records that one write removes.
	pruneAtOnce = 100
	// recordPage bounds the records of one answer of etcd: the largest has about 800 KiB.
	recordPage = 32
	// measureEvery is how many bytes of records a Source writes until it adds up the sizes of all records.
	measureEvery = 1 << 20
	maxCursor    = 1024
	// timeDigits is the length of a time in the key of a record.
	timeDigits = 19
)

// record gives the key of a record. Keys are in the order of the time: 19 digits hold all of it. The random part keeps records of one
// nanosecond apart. The size and the object in the key are there to be read without the value.
func (k keys) record(r *source.Record, size int) string {
	return fmt.Sprintf("%s%0*d-%s-%d/%s", k.audit(), timeDigits, r.Time.UnixNano(), rand.Text()[:13], size, r.Object)
}

// recordSize reads the size of a record from its key; 0 from another key.
func (k keys) recordSize(key []byte) int {
	before, _, _ := strings.Cut(strings.TrimPrefix(string(key), k.audit()), "/")
	size, err := strconv.Atoi(before[strings.LastIndexByte(before, '-')+1:])
	if err != nil || size < 0 || strings.Count(before, "-") != 2 {
		return 0
	}
	return min(size, 4*source.MaxText)
}

// recordTime reads the time of a record's key.
func (k keys) recordTime(key []byte) (time.Time, bool) {
	digits, _, found := strings.Cut(strings.TrimPrefix(string(key), k.audit()), "-")
	nanoseconds, err := strconv.ParseInt(digits, 10, 64)
	return time.Unix(0, nanoseconds), found && err == nil
}

// isRecord reports whether a key may be that of a record: it begins with 19 digits, and names an object.
func (k keys) isRecord(key string) bool {
	before, _, found := strings.Cut(strings.TrimPrefix(key, k.audit()), "/")
	digits, _, dashed := strings.Cut(before, "-")
	return found && dashed && len(digits) == timeDigits && strings.Trim(digits, "0123456789") == ""
}

// recordObject reads the object of a record's key.
func (k keys) recordObject(key []byte) string {
	_, object, _ := strings.Cut(strings.TrimPrefix(string(key), k.audit()), "/")
	return object
}

// putRecord gives the operation that writes the record of a change, and its size.
func (s *Source) putRecord(w *source.Write) (put clientv3.Op, size int, err error) {
	if w.Record.Object == "" {
		w.Record.Object = w.Key.String()
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // Escaped text would be longer.
	if err := encoder.Encode(w.Record); err != nil {
		return clientv3.Op{}, 0, fmt.Errorf("config/source/etcd: the record of %s: %w", w.Key, err)
	}
	return clientv3.OpPut(s.keys.record(&w.Record, text.Len()), text.String()), text.Len(), nil
}

// prune removes some of the oldest records beyond the bounds. It is not a part of the change: a failure is logged,
// and the next change prunes again. own is the key of the new record, which stays, although the clock that gave its time may be slow. size
// is that of the new record.
func (s *Source) prune(ctx context.Context, client *clientv3.Client, own string, size int) {
	oldest, err := client.Get(ctx, s.keys.audit(), clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(pruneAtOnce))
	if err == nil {
		if n := s.expired(oldest, time.Now()); n > 0 {
			err = s.deleteTo(ctx, client, string(oldest.Kvs[n-1].GetKey()), own)
		}
	}
	if err == nil && s.unmeasured.Add(int64(size)) >= measureEvery {
		if err = s.pruneBytes(ctx, client, own); err == nil {
			s.unmeasured.Store(0)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.config.Logger.Warn("old records of changes cannot be removed from etcd: the next change tries again", "error", err)
	}
}

// deleteTo removes the records up to a key, except own.
func (s *Source) deleteTo(ctx context.Context, client *clientv3.Client, last, own string) error {
	if own > last {
		_, err := client.Delete(ctx, s.keys.audit(), clientv3.WithRange(last+"\x00"))
		return err
	}
	ops := []clientv3.Op{clientv3.OpDelete(s.keys.audit(), clientv3.WithRange(own))}
	if own < last {
		ops = append(ops, clientv3.OpDelete(own+"\x00", clientv3.WithRange(last+"\x00")))
	}
	_, err := client.Txn(ctx).Then(ops...).Commit()
	return err
}

// pruneBytes removes the oldest records beyond the bound of all bytes. It reads the keys of all records, so that it does not
// run for each change: beyond the bound are at most measureEvery bytes for each instance that writes.
func (s *Source) pruneBytes(ctx context.Context, client *clientv3.Client, own string) error {
	total := 0
	for end := clientv3.GetPrefixRangeEnd(s.keys.audit()); end != ""; {
		names, next, err := s.recordsBefore(ctx, client, end, "")
		if err != nil {
			return err
		}
		for _, name := range names {
			if total += s.keys.recordSize([]byte(name)); total > s.config.MaxRecordBytes {
				return s.deleteTo(ctx, client, name, own)
			}
		}
		end = next
	}
	return nil
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

// Records implements source.Writer. It reads keys first, and the values of the records that it gives.
func (s *Source) Records(ctx context.Context, q source.RecordQuery) (page source.RecordPage, err error) {
	if q.After != "" && (len(q.After) > maxCursor || !s.keys.isRecord(s.keys.audit()+q.After)) {
		return page, source.ErrBadCursor
	}
	ctx = clientv3.WithRequireLeader(ctx)
	client, err := s.connection.get(ctx)
	if err != nil {
		return page, s.recordsFault(err)
	}
	p := recordPages{Source: s, client: client, number: min(q.Number, s.config.MaxRecords), page: &page}
	end := clientv3.GetPrefixRangeEnd(s.keys.audit())
	if q.After != "" {
		end = s.keys.audit() + q.After
	}
	for end != "" && !p.full() {
		var names []string
		if names, end, err = s.recordsBefore(ctx, client, end, q.Object); err == nil {
			err = p.take(ctx, names, end != "")
		}
		if err != nil {
			s.connection.failed(client, err)
			return page, s.recordsFault(err)
		}
	}
	return page, nil
}

// recordPages collects one page.
type recordPages struct {
	*Source

	client *clientv3.Client
	number int
	page   *source.RecordPage
	bytes  int
	ended  bool // The next record has no space.
}

func (p *recordPages) full() bool {
	return len(p.page.Records) >= p.number || p.bytes >= source.RecordPageBytes || p.ended
}

// take reads records by their keys until the page is full. more says that there are others after them.
func (p *recordPages) take(ctx context.Context, names []string, more bool) error {
	for len(names) > 0 && !p.full() {
		some, size := 1, p.keys.recordSize([]byte(names[0]))
		if p.ended = len(p.page.Records) > 0 && p.bytes+size > source.RecordPageBytes; p.ended {
			return nil // Next is the record before.
		}
		for ; some < min(recordPage, len(names), p.number-len(p.page.Records)); some++ {
			if size += p.keys.recordSize([]byte(names[some])); p.bytes+size > source.RecordPageBytes {
				break
			}
		}
		if err := p.read(ctx, names[:some]); err != nil {
			return err
		}
		if p.page.Next = ""; some < len(names) || more {
			p.page.Next = strings.TrimPrefix(names[some-1], p.keys.audit())
		}
		names = names[some:]
	}
	return nil
}

// recordsBefore gives the keys of an object's records before a key, the newest first, and the key for the next call.
func (s *Source) recordsBefore(ctx context.Context, client *clientv3.Client, end, object string) (names []string, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := client.Get(ctx, s.keys.audit(), clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(maxPage),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	if err != nil {
		return nil, "", err
	}
	for _, kv := range r.Kvs {
		name := string(kv.GetKey()) // It may be another program's, and then it is no place of the next records.
		if s.keys.isRecord(name) && (object == "" || s.keys.recordObject(kv.GetKey()) == object) {
			names = append(names, name)
		}
	}
	if r.More && len(r.Kvs) > 0 {
		next = string(r.Kvs[len(r.Kvs)-1].GetKey())
	}
	return names, next, nil
}

// read appends records by their keys. Records that were pruned meanwhile, and values that are no records, are left out.
func (p *recordPages) read(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	gets := make([]clientv3.Op, len(names))
	for i, name := range names {
		gets[i] = clientv3.OpGet(name)
	}
	r, err := p.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return err
	}
	for _, one := range r.Responses {
		for _, kv := range one.GetResponseRange().GetKvs() {
			var record source.Record
			if p.bytes += len(kv.GetValue()); json.Unmarshal(kv.GetValue(), &record) == nil {
				p.page.Records = append(p.page.Records, record)
			}
		}
	}
	return nil
}

func (s *Source) recordsFault(err error) error {
	return fmt.Errorf("config/source/etcd: the records cannot be read from %s: %w%s", s.config, err, s.connection.advice(err))
}
