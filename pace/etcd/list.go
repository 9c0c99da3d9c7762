package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The number of keys that List reads at once, and in all.
const (
	pageKeys = 500
	listKeys = 100_000
)

var errTooMany = errors.New("pace/etcd: too many keys to list: list a single provider, or give each group of providers its own prefix")

// List gives all providers, by name, at one revision. It reads at most 100,000 keys.
func (l Limits) List(ctx context.Context) ([]Entry, error) {
	prefix, err := l.prefix()
	if err != nil {
		return nil, err
	}
	views := map[string]*view{}
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	revision := int64(0)
	for read := 0; ; read += pageKeys {
		if read >= listKeys {
			return nil, errTooMany
		}
		page, err := l.Client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageKeys), clientv3.WithRev(revision))
		if err != nil {
			return nil, fmt.Errorf("pace/etcd: %s cannot be read: %w", prefix, err)
		}
		if revision == 0 {
			revision = historyOf(page.Header).revision
		}
		for _, kv := range convertAll(page.Kvs) {
			from = kv.key + "\x00"
			provider, _, _ := strings.Cut(strings.TrimPrefix(kv.key, prefix), "/")
			if checkName("provider", provider) != nil {
				continue
			}
			if views[provider] == nil {
				views[provider] = &view{keys: keysOf(prefix, provider)}
			}
			views[provider].set(kv, revision)
		}
		if !page.More {
			break
		}
	}
	entries := make([]Entry, 0, len(views))
	for _, provider := range slices.Sorted(maps.Keys(views)) {
		if e := views[provider].entry(provider); !e.empty() {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// watchEvery bounds how often Watch calls its function.
const watchEvery = 250 * time.Millisecond

// Watch calls f with the data of a provider, and again after changes, at most four times a second.
// Reports of members are changes too. For an unknown provider, the Entry has no limit. When ctx
// ends, Watch gives nil. It gives an error only if the first read fails; later it retries.
func (l Limits) Watch(ctx context.Context, provider string, f func(Entry)) error {
	k, err := l.keys(provider)
	if err != nil {
		return err
	}
	for begun := false; ; begun = true {
		v, revision, err := l.view(ctx, k)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // That is how it ends.
		case err != nil && !begun:
			return err
		case err == nil:
			f(v.entry(provider))
			l.await(ctx, k, revision)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// await waits for a change after a revision, or for a failure of the watch.
func (l Limits) await(ctx context.Context, k keys, revision int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for e := range l.Client.Watch(clientv3.WithRequireLeader(ctx), k.base, clientv3.WithPrefix(), clientv3.WithRev(revision+1)) {
		if e.Err() != nil || len(e.Events) > 0 {
			return
		}
	}
}

// set applies one key at a revision.
func (v *view) set(kv *keyValue, asOf int64) {
	switch {
	case kv.key == v.keys.limit():
		v.setLimit(kv, asOf)
	case kv.key == v.keys.plan():
		v.setPlan(kv, asOf)
	case kv.key == v.keys.brake():
		v.setBrake(kv, asOf)
	case strings.HasPrefix(kv.key, v.keys.members()):
		v.setMember(kv, asOf)
	}
}
