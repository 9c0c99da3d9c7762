package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Limits reads and writes the limits of providers, for operators, and reads the state of their
// instances. Limits is safe for concurrent use. Its methods wait for etcd until ctx ends: set a
// deadline.
type Limits struct {
	Client *clientv3.Client
	// Prefix begins all keys; the default is DefaultPrefix.
	Prefix string
}

// keys gives the keys of a provider.
func (l Limits) keys(provider string) (keys, error) {
	prefix, err := l.prefix()
	if err != nil {
		return keys{}, err
	}
	return keysOf(prefix, provider), checkName("provider", provider)
}

func (l Limits) prefix() (string, error) {
	if l.Client == nil {
		return "", errors.New("pace/etcd: no client: make one by clientv3.New")
	}
	return checkPrefix(l.Prefix)
}

// Get gives the data of a provider at one revision, or an error that wraps [ErrNotFound].
// Entry.Faults lists invalid values.
func (l Limits) Get(ctx context.Context, provider string) (Entry, error) {
	k, err := l.keys(provider)
	if err != nil {
		return Entry{}, err
	}
	v, _, err := l.view(ctx, k)
	if err != nil {
		return Entry{}, err
	}
	e := v.entry(provider)
	if e.empty() {
		return Entry{}, fmt.Errorf("%w: %s: set its limit first", ErrNotFound, provider)
	}
	return e, nil
}

// view reads all keys of a provider, and gives their revision.
func (l Limits) view(ctx context.Context, k keys) (*view, int64, error) {
	found, err := l.Client.Txn(ctx).Then(
		clientv3.OpGet(k.limit()), clientv3.OpGet(k.plan()), clientv3.OpGet(k.brake()),
		clientv3.OpGet(k.members(), clientv3.WithPrefix(), clientv3.WithLimit(maxMembers+1)),
	).Commit()
	if err != nil {
		return nil, 0, fmt.Errorf("pace/etcd: %s cannot be read: %w", k.base, err)
	}
	v, revision := &view{keys: k}, historyOf(found.Header).revision
	for _, kv := range slices.Concat(answers(found)...) {
		v.set(kv, revision)
	}
	return v, revision, nil
}

// Set writes a provider's limit, and gives its revision. revision is Entry.Revision of the limit
// that was read. If the limit has another revision now, the error wraps [ErrConflict]. 0 creates
// the limit, and [AnyRevision] overwrites any limit.
func (l Limits) Set(ctx context.Context, provider string, limit Limit, revision int64) (int64, error) {
	k, err := l.keys(provider)
	if err != nil {
		return 0, err
	}
	if limit.Balance == "" {
		limit.Balance = Even
	}
	if err := limit.check(); err != nil {
		return 0, err
	}
	if err := l.fits(ctx, k, limit); err != nil {
		return 0, err
	}
	return l.change(ctx, k, revision, clientv3.OpPut(k.limit(), limit.encode()))
}

// fits checks that windows of the present plan and of the limit have common edges.
func (l Limits) fits(ctx context.Context, k keys, limit Limit) error {
	there, err := l.Client.Get(ctx, k.plan())
	if err != nil {
		return fmt.Errorf("pace/etcd: %s cannot be read: %w", k.plan(), err)
	}
	if len(there.Kvs) == 0 {
		return nil
	}
	present, err := parsePlan(convert(there.Kvs[0]).value)
	if err != nil {
		return nil //nolint:nilerr // The instances replace a plan that is not valid.
	}
	_, err = commonLength(present.per, limit.Per)
	return err
}

// Delete deletes a provider's limit. The instances keep the last limit, and count a fault, until
// there is another one. revision is as in Set. Without a limit, the error wraps [ErrNotFound].
func (l Limits) Delete(ctx context.Context, provider string, revision int64) error {
	k, err := l.keys(provider)
	if err != nil {
		return err
	}
	if revision == 0 {
		return fmt.Errorf("%w: revision 0 is that of no limit: give the one that was read, or AnyRevision", ErrConflict)
	}
	_, err = l.change(ctx, k, revision, clientv3.OpDelete(k.limit()))
	return err
}

// change changes a limit on condition of its revision.
func (l Limits) change(ctx context.Context, k keys, revision int64, what clientv3.Op) (int64, error) {
	compare := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(k.limit()), "=", revision)}
	switch {
	case revision == AnyRevision && what.IsDelete():
		compare[0] = clientv3.Compare(clientv3.ModRevision(k.limit()), ">", 0)
	case revision == AnyRevision:
		compare = nil
	}
	done, err := l.Client.Txn(ctx).If(compare...).Then(what).Else(clientv3.OpGet(k.limit())).Commit()
	if err != nil {
		return 0, fmt.Errorf("pace/etcd: %s cannot be written: %w", k.limit(), err)
	}
	if done.Succeeded {
		return historyOf(done.Header).revision, nil
	}
	there := first(answers(done)[0])
	switch {
	case there == nil && what.IsDelete():
		return 0, fmt.Errorf("%w: %s does not exist", ErrNotFound, k.limit())
	case there == nil:
		return 0, fmt.Errorf("%w: it had revision %d, and was deleted", ErrConflict, revision)
	}
	return 0, fmt.Errorf("%w: it has revision %d, not %d", ErrConflict, there.mod, revision)
}
