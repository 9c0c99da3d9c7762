package election

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxBase bounds the base of terms. Terms are shifted by 20 bits in numbers of reports.
	maxBase = 1 << 42
	// farewell bounds the time in which a master deletes its key.
	farewell = time.Second
	// A master writes its key again after 3 ttl, or after a minute. So terms grow with the time: the next master has a term that is
	// larger by the number of these writes at least, and numbers its reports to a parent from there, 2^20 for each term.
	writeAgain, mostAgain = 3, time.Minute
)

// errLost says that the key of this server is gone.
var errLost = errors.New("lease/election: the key of this master is gone: it expired, or an operator deleted it")

// IsLost reports whether an error says that this server is not the master of the term.
func IsLost(err error) bool { return errors.Is(err, errLost) }

// campaign writes the master's key, if there is none.
func (e *Election) campaign(ctx context.Context, client *clientv3.Client) error {
	within, cancel := context.WithTimeout(ctx, e.patience())
	defer cancel()
	sent := time.Now()
	lease, err := client.Grant(within, int64((e.config.TTL+time.Second-1)/time.Second))
	if err != nil {
		return err
	}
	e.granted = lease.ID
	done, err := client.Txn(within).If(clientv3.Compare(clientv3.CreateRevision(e.keys.master), "=", 0)).
		Then(clientv3.OpPut(e.keys.master, e.config.Address, clientv3.WithLease(lease.ID))).Commit()
	if err != nil {
		return err
	}
	if !done.Succeeded { // Another server was first.
		e.granted = 0
		_, err := client.Revoke(within, lease.ID)
		return err
	}
	t := &tenure{lease: lease.ID, revision: done.Header.GetRevision(), written: sent}
	t.renewed(sent, lease.TTL)
	base, err := e.base(within, client, t)
	if err != nil {
		return err // The next round finds the own key, and deletes it.
	}
	t.term = base + uint64(t.revision)
	e.setTenure(t)
	e.stats.won.Add(1)
	e.config.Log.Info("lease/election: this server is the master", "group", e.config.Group, "address", e.config.Address, "term", t.term)
	e.display(t.status(e.config.Address))
	return nil
}

// base gives the base of the terms. The first master of the group writes it.
func (e *Election) base(ctx context.Context, client *clientv3.Client, t *tenure) (uint64, error) {
	first := strconv.FormatInt(time.Now().UnixMilli(), 10)
	absent := clientv3.Compare(clientv3.CreateRevision(e.keys.base), "=", 0)
	done, err := client.Txn(ctx).If(absent, e.fence(t)).Then(clientv3.OpPut(e.keys.base, first)).Else(clientv3.OpGet(e.keys.base)).Commit()
	if err != nil {
		return 0, err
	}
	text := first
	if !done.Succeeded {
		kvs := firstRead(done)
		if len(kvs) == 0 {
			return 0, errLost
		}
		text = string(kvs[0].GetValue())
	}
	base, err := strconv.ParseUint(text, 10, 64)
	if err != nil || base >= maxBase {
		return 0, fmt.Errorf("lease/election: the key %s has %.40q: write the present time there, in milliseconds since 1970",
			e.keys.base, text)
	}
	return base, nil
}

// firstRead returns the keys of a transaction's first read. A wrong server may answer without one.
func firstRead(done *clientv3.TxnResponse) []*mvccpb.KeyValue {
	if len(done.Responses) == 0 {
		return nil
	}
	return done.Responses[0].GetResponseRange().GetKvs()
}

// fence is true while the key of this tenure exists.
func (e *Election) fence(t *tenure) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(e.keys.master), "=", t.revision)
}

// renewed counts the end from the time at which the renewal was sent. A tenth is a margin for clocks with different rates.
func (t *tenure) renewed(sent time.Time, seconds int64) {
	t.ttl = time.Duration(seconds) * time.Second
	t.sent, t.until = sent, sent.Add(t.ttl-t.ttl/10)
}

func (t *tenure) status(address string) Status {
	return Status{Master: address, Mine: true, Until: t.until, Term: t.term}
}

// serve waits until the renewal is due, and renews. The tenure ends when its end has passed, or when the key is gone.
func (e *Election) serve(ctx context.Context, client *clientv3.Client, t *tenure) error {
	pause(ctx, time.Until(t.sent.Add(t.ttl/4)))
	if ctx.Err() != nil {
		return nil //nolint:nilerr // The end of ctx is none.
	}
	next, err := e.renew(ctx, client, *t)
	switch {
	case err == nil && time.Now().Before(next.until):
		e.heard = time.Now()
		e.setTenure(&next)
		e.display(next.status(e.config.Address))
		return nil
	case errors.Is(err, errLost), !time.Now().Before(t.until):
		e.resign()
	}
	return err
}

// renew renews the lease of etcd. Then it reads the key, because a server of etcd that has lost its cluster may
// still answer a renewal, but no read.
func (e *Election) renew(ctx context.Context, client *clientv3.Client, t tenure) (tenure, error) {
	within, cancel := context.WithTimeout(ctx, min(e.patience(), time.Until(t.until)))
	defer cancel()
	sent := time.Now()
	lease, err := client.KeepAliveOnce(within, t.lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return t, errLost
	}
	if err != nil {
		return t, err
	}
	got, err := client.Get(within, e.keys.master)
	if err != nil {
		return t, err
	}
	if len(got.Kvs) == 0 || got.Kvs[0].GetCreateRevision() != t.revision {
		return t, errLost
	}
	t.renewed(sent, lease.TTL)
	if sent.Sub(t.written) >= min(writeAgain*t.ttl, mostAgain) {
		t.written = sent
		e.again(within, client, &t)
	}
	return t, nil
}

// again writes the key again. The tenure goes on without it: an etcd without space still renews, and has the leases of its holders.
func (e *Election) again(ctx context.Context, client *clientv3.Client, t *tenure) {
	put := clientv3.OpPut(e.keys.master, e.config.Address, clientv3.WithLease(t.lease))
	if _, err := client.Txn(ctx).If(e.fence(t)).Then(put).Commit(); err != nil {
		e.stats.failures.Add(1)
	}
}

// resign ends the tenure.
func (e *Election) resign() {
	e.setTenure(nil)
	e.stats.lost.Add(1)
	e.config.Log.Warn("lease/election: this server is no longer the master", "group", e.config.Group)
	e.display(Status{})
}

// leave ends the part of this server in elections.
func (e *Election) leave(ctx context.Context) {
	if t := e.tenure(); t != nil {
		e.resign()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if client, err := e.open(ctx); err == nil {
			_, _ = client.Revoke(ctx, t.lease) // Without an answer, the key expires.
		}
	}
	e.close()
}
