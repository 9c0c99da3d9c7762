package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/config/source"
)

const (
	// maxPage and minPage bound the keys of one page. A page with 1,000 objects of 64 KiB fits into maxAnswer, and
	// a page with a few values of etcd's own bound does too.
	maxPage, minPage = 1000, 4
	// maxForeign bounds the keys that are no objects, beside which objects are still read.
	maxForeign = 10_000
)

// listing is everything below the prefix at one revision.
type listing struct {
	objects []source.Object
	history history
	foreign foreignKeys
}

// list reads all objects at one revision. Page by page, so that no answer is large.
func (s *Source) list(ctx context.Context, client *clientv3.Client) (*listing, error) {
	l := &listing{}
	for from, page := s.keys.first(), maxPage; from != ""; {
		r, err := s.page(ctx, client, from, l.history.revision, page)
		if page > minPage && ctx.Err() == nil && isTooMuch(err) {
			page = max(minPage, page/4)
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Count > int64(s.config.MaxObjects+maxForeign) {
			return nil, s.tooMany(r.Count)
		}
		if l.history.revision == 0 {
			l.history = historyOf(r.Header)
			l.objects = make([]source.Object, 0, r.Count)
		}
		for _, kv := range r.Kvs {
			l.add(s.keys, kv)
		}
		if len(l.objects) > s.config.MaxObjects {
			return nil, s.tooMany(int64(len(l.objects)))
		}
		from = next(r)
	}
	return l, nil
}

// page reads at most n keys, at a revision, or at the newest one if that is 0.
func (s *Source) page(ctx context.Context, client *clientv3.Client, from string, revision int64, n int) (*clientv3.GetResponse, error) {
	inner, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return client.Get(inner, from, clientv3.WithRange(s.keys.end()), clientv3.WithLimit(int64(n)), clientv3.WithRev(revision))
}

// next gives the key after a page; "" after the last page.
func next(r *clientv3.GetResponse) string {
	if !r.More || len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[len(r.Kvs)-1].GetKey()) + "\x00"
}

func (l *listing) add(k keys, kv *mvccpb.KeyValue) {
	key, err := k.parse(kv.GetKey())
	if err != nil {
		l.foreign.add(kv.GetKey(), err)
		return
	}
	l.objects = append(l.objects, object(key, kv))
}

// isTooMuch says that a smaller page may succeed.
func isTooMuch(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.ResourceExhausted || status.Code(err) == codes.DeadlineExceeded
}

func (s *Source) tooMany(n int64) error {
	return fmt.Errorf("config/source/etcd: %s has %d objects, and the bound is %d: delete some: until then, the last objects that were read are in force",
		s.config, n, s.config.MaxObjects)
}
