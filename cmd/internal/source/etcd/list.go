package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// maxPage and minPage bound the keys of one page. etcd counts all keys for each page, so that small pages are slow. A page
	// that does not fit into maxAnswer is read again as smaller pages. minPage values of etcd's own bound fit.
	maxPage, minPage = 4000, 4
)

// listing is everything below the prefix at one revision.
type listing struct {
	objects []source.Object
	bytes   int // of the texts
	history history
	foreign foreignKeys
}

// list reads all objects at one revision, in pages of f.page keys. After an answer that was too large or too slow, the
// pages are smaller, until a read has succeeded. Keys that are no objects are read too, and not kept.
func (f *follower) list(ctx context.Context, client *clientv3.Client) (*listing, error) {
	l := &listing{}
	for from := f.keys.first(); from != ""; {
		r, err := f.readPage(ctx, client, from, l.history.revision, f.page)
		if err != nil && f.page > minPage && isTooMuch(err) {
			f.page = max(minPage, f.page/4)
			if isTooLarge(err) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if l.history.revision == 0 {
			l.history = historyOf(r.Header)
			l.objects = make([]source.Object, 0, min(r.Count, int64(f.config.MaxObjects)))
		}
		for _, kv := range r.Kvs {
			l.add(f.keys, kv)
		}
		if err := f.checkBounds(len(l.objects), l.bytes); err != nil {
			return nil, err
		}
		from = next(r)
	}
	f.page = maxPage
	return l, nil
}

// readPage reads at most n keys at a revision, or at the newest one if that is 0. A page may take twice the time of
// another answer.
func (f *follower) readPage(
	ctx context.Context, client *clientv3.Client, from string, revision int64, n int,
) (*clientv3.GetResponse, error) {
	inner, cancel := context.WithTimeout(ctx, 2*f.config.Timeout)
	defer cancel()
	inner = clientv3.WithRequireLeader(inner)
	return client.Get(inner, from, clientv3.WithRange(f.keys.end()), clientv3.WithLimit(int64(n)), clientv3.WithRev(revision))
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
	l.bytes += len(l.objects[len(l.objects)-1].Text)
}

// isTooMuch says that a smaller page may succeed.
func isTooMuch(err error) bool {
	return isTooLarge(err) || errors.Is(err, context.DeadlineExceeded) || codeOf(err) == codes.DeadlineExceeded
}

func isTooLarge(err error) bool { return codeOf(err) == codes.ResourceExhausted }

// checkBounds says that there are too many objects, or too many bytes in their texts.
func (s *Source) checkBounds(n, bytes int) error {
	switch {
	case n > s.config.MaxObjects:
		return fmt.Errorf("there are at least %d objects, and the bound is %d: delete some: until then, the last objects that were read "+
			"are in force", n, s.config.MaxObjects)
	case bytes > s.config.MaxBytes:
		return fmt.Errorf("the objects have at least %d bytes, and the bound is %d: delete or shorten some: until then, the last objects "+
			"that were read are in force", bytes, s.config.MaxBytes)
	}
	return nil
}
