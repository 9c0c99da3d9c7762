package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// AllLimits are the limits of all providers below a prefix. The maps must not be modified.
type AllLimits struct {
	// Limits are the last valid limits, by provider.
	Limits map[string]Limit
	// Faults say why the present value of a provider is not valid. Its last valid limit stays.
	Faults map[string]error
}

const (
	// maxLimits bounds the providers that Follow knows.
	maxLimits = 10_000
	// readLimits bounds one request of Follow. checkLimits is the interval of requests that notice an
	// outage. againLimits is the pause before the next attempt: it is up to twice as long.
	readLimits, checkLimits, againLimits = 3 * time.Second, 2 * time.Second, 500 * time.Millisecond
)

// Follow calls f with the limits of all providers, and again after each change, until ctx ends. While etcd
// fails, Follow retries, and f gets the error and the last limits. The values of the prefix are read once:
// Follow also receives the reports of instances below the prefix, and ignores them.
//
// A deleted limit is no longer there. When etcd has lost its data, all limits stay until there are others.
// Follow returns an error only for an invalid prefix or client.
func (l Limits) Follow(ctx context.Context, f func(AllLimits, error)) error {
	prefix, err := l.prefix()
	if err != nil {
		return err
	}
	known := &knownLimits{prefix: prefix, client: l.Client, tell: f}
	for {
		err := known.follow(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // That is how it ends.
		}
		f(known.all, fmt.Errorf("pace/etcd: the limits below %s cannot be read, the last ones stay: %w", prefix, err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jitter(againLimits)):
		}
	}
}

// All reads the limits of all providers once.
func (l Limits) All(ctx context.Context) (AllLimits, error) {
	prefix, err := l.prefix()
	if err != nil {
		return AllLimits{}, err
	}
	known := &knownLimits{prefix: prefix, client: l.Client}
	if _, err := known.read(ctx); err != nil {
		return AllLimits{}, fmt.Errorf("pace/etcd: the limits below %s cannot be read: %w", prefix, err)
	}
	return known.all, nil
}

// knownLimits is the state of Follow.
type knownLimits struct {
	prefix  string
	client  *clientv3.Client
	tell    func(AllLimits, error)
	all     AllLimits
	history history
}

// follow reads all limits, and then follows changes until etcd fails.
func (k *knownLimits) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lost, err := k.read(ctx)
	if err != nil {
		return err
	}
	k.tell(k.all, lost)
	from := k.history.revision + 1
	events := k.client.Watch(clientv3.WithRequireLeader(ctx), k.prefix, clientv3.WithPrefix(), clientv3.WithRev(from))
	check := time.NewTicker(checkLimits)
	defer check.Stop()
	for {
		select {
		case e, ok := <-events:
			if err := k.apply(e, ok); err != nil {
				return err
			}
		case <-check.C: // The watch of etcd's client says nothing about an outage.
			if _, err := k.page(ctx, k.prefix, k.prefix+"\x00", 0); err != nil {
				return err
			}
		}
	}
}

// apply applies one response of the watch. ok is false after its end.
func (k *knownLimits) apply(e clientv3.WatchResponse, ok bool) error {
	if !ok {
		return errClosed
	}
	if err := e.Err(); err != nil {
		return err
	}
	k.history.revision = max(k.history.revision, e.Header.GetRevision())
	if k.change(e.Events) {
		k.tell(k.all, nil)
	}
	return nil
}

// read replaces all limits. When etcd has lost its data, limits that are missing stay, and lost says so.
func (k *knownLimits) read(ctx context.Context) (lost, err error) {
	found := AllLimits{Limits: map[string]Limit{}, Faults: map[string]error{}}
	var now history
	from, end := k.prefix, clientv3.GetPrefixRangeEnd(k.prefix)
	for read := 0; ; read += pageKeys {
		if read >= listKeys {
			return nil, errTooMany
		}
		page, err := k.page(ctx, from, end, now.revision)
		if err != nil {
			return nil, err
		}
		if now.revision == 0 {
			now = historyOf(page.Header)
		}
		for _, kv := range convertAll(page.Kvs) {
			from = kv.key + "\x00"
			if provider, ok := k.provider(kv.key); ok {
				found.set(provider, kv.value)
			}
		}
		if !page.More {
			break
		}
	}
	if !now.after(k.history) {
		lost = errHistory
	}
	k.keep(found, lost != nil)
	k.history = now
	return lost, nil
}

func (k *knownLimits) page(ctx context.Context, from, end string, revision int64) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimits)
	defer cancel()
	return k.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageKeys), clientv3.WithRev(revision))
}

// keep adopts what was read. A provider with an invalid value keeps its last limit, and all providers do if
// etcd has lost its data.
func (k *knownLimits) keep(found AllLimits, all bool) {
	for provider, last := range k.all.Limits {
		_, known := found.Limits[provider]
		if _, invalid := found.Faults[provider]; !known && (invalid || all) {
			found.Limits[provider] = last
		}
	}
	k.all = found
}

// change applies events, and reports whether a limit has changed.
func (k *knownLimits) change(events []*clientv3.Event) bool {
	next, changed := k.all, false
	for _, e := range events {
		kv, deleted := convertEvent(e)
		provider, ok := k.provider(kv.key)
		if !ok {
			continue
		}
		if !changed {
			next, changed = AllLimits{maps.Clone(k.all.Limits), maps.Clone(k.all.Faults)}, true
		}
		if deleted {
			delete(next.Limits, provider)
			delete(next.Faults, provider)
			continue
		}
		next.set(provider, kv.value)
	}
	k.all = next
	return changed
}

// provider returns the provider of a key with a limit.
func (k *knownLimits) provider(key string) (string, bool) {
	name, ok := strings.CutSuffix(strings.TrimPrefix(key, k.prefix), "/limit")
	return name, ok && checkName("provider", name) == nil
}

var errManyLimits = errors.New("pace/etcd: too many providers: give each group of providers its own prefix")

// set applies the value of one provider.
func (a *AllLimits) set(provider string, value []byte) {
	limit, err := parseLimit(value)
	if _, known := a.Limits[provider]; !known && err == nil && len(a.Limits) >= maxLimits {
		err = errManyLimits
	}
	if err == nil {
		a.Limits[provider] = limit
		delete(a.Faults, provider)
		return
	}
	if _, known := a.Faults[provider]; known || len(a.Faults) < maxLimits {
		a.Faults[provider] = err
	}
}
