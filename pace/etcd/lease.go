package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/pace"
)

// tenure is the state of an instance's membership. It is immutable once published.
type tenure struct {
	lease      clientv3.LeaseID
	until      time.Time // until when the lease is valid, at least
	registered bool      // the member key exists, with this instance's lease
	displaced  bool      // the key belongs to another instance
	since      int64     // the revision of that finding
	// own are the leases of this instance that may have the key, the newest last.
	own []clientv3.LeaseID
}

// maxOwn bounds the remembered leases: older ones have expired.
const maxOwn = 8

func (t *tenure) owns(lease int64) bool { return slices.Contains(t.own, clientv3.LeaseID(lease)) }

// membership keeps an instance's key alive with a lease, and writes its reports.
type membership struct {
	*Source
	tenure // belongs to the goroutine of run, like all fields without another comment

	to   pace.Receiver
	keys keys

	shown   atomic.Pointer[tenure]
	changed chan struct{} // signals a change of the published tenure
	poke    chan struct{} // signals that the key may have another owner or none
	members atomic.Int64  // the number of live instances; with more instances, each one reports less often

	ttl     time.Duration
	renewed time.Time
	reports time.Time // when the next report is due
	began   bool      // the instance has been registered once
}

func newMembership(s *Source, to pace.Receiver, k keys) *membership {
	m := &membership{Source: s, to: to, keys: k, changed: make(chan struct{}, 1), poke: make(chan struct{}, 1)}
	m.shown.Store(&tenure{})
	return m
}

// run keeps the membership until ctx is done, and then gives it up.
func (m *membership) run(ctx context.Context, fault func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			m.end(ctx)
			return
		case <-m.poke:
			m.reports = time.Time{}
		case <-timer.C:
		}
		wait := m.wait(time.Now())
		if err := m.beat(ctx); err != nil && ctx.Err() == nil {
			fault(fmt.Errorf("pace/etcd: as a member of %s: %w", m.keys.base, err))
			wait = min(wait, jitter(min(m.config.TTL/16, 500*time.Millisecond)))
		} else if err == nil {
			wait = m.wait(time.Now())
		}
		m.show()
		timer.Reset(wait)
	}
}

// look makes run check the owner of the member key soon.
func (m *membership) look() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// beat does the work that is due: getting a lease, renewing it, and reporting.
func (m *membership) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(max(m.config.TTL/3, 500*time.Millisecond), 3*time.Second))
	defer cancel()
	if m.lease != 0 && time.Since(m.renewed) > m.ttl {
		// The renewal may still reach etcd without an answer. An instance that does not know the
		// state of its lease gives the lease up.
		m.lease, m.registered = 0, false
	}
	if m.lease == 0 {
		if err := m.grant(ctx); err != nil {
			return err
		}
	} else if m.renewsIn(time.Now()) <= 0 {
		if err := m.renew(ctx); err != nil {
			return err
		}
	}
	if !m.registered || m.reportsIn(time.Now()) <= 0 {
		return m.report(ctx)
	}
	return nil
}

func (m *membership) grant(ctx context.Context) error {
	sent := time.Now()
	lease, err := m.config.Client.Grant(ctx, int64((m.config.TTL+time.Second-1)/time.Second))
	if err != nil {
		return err
	}
	m.lease, m.registered = lease.ID, false
	m.own = append(slices.Clone(m.own[max(0, len(m.own)-maxOwn+1):]), lease.ID)
	m.holds(sent, lease.TTL)
	m.show() // Publish before the key is written: readers of the key must know its owner.
	return nil
}

func (m *membership) renew(ctx context.Context) error {
	sent := time.Now()
	lease, err := m.config.Client.KeepAliveOnce(ctx, m.lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		m.lease, m.registered = 0, false
		m.show()
		return m.grant(ctx)
	}
	if err == nil {
		m.holds(sent, lease.TTL)
	}
	return err
}

// holds records that a lease, requested at sent, is valid for so many seconds. The last quarter is
// a margin for clocks with different rates.
func (m *membership) holds(sent time.Time, seconds int64) {
	m.ttl = time.Duration(seconds) * time.Second
	m.renewed, m.until = sent, sent.Add(m.ttl/4*3)
}

// report writes the member key, if it belongs to this instance or has no owner.
func (m *membership) report(ctx context.Context) error {
	now := time.Now()
	key, lease := m.keys.member(m.config.ID), int64(m.lease)
	put := clientv3.OpPut(key, m.record(), clientv3.WithLease(m.lease))
	done, err := m.config.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.LeaseValue(key), "=", lease)).Then(put).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return m.lost(err)
	}
	if done.Succeeded {
		m.holdsKey(now, historyOf(done.Header).revision)
		return nil
	}
	compare := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	if there := first(answers(done)[0]); there != nil {
		if m.began && there.lease != 0 && !m.owns(there.lease) {
			m.registered, m.displaced = false, true
			return fmt.Errorf("%w: another instance has taken the ID %s: give each its own; this one stops until the ID is free",
				errDisplaced, m.config.ID)
		}
		compare = clientv3.Compare(clientv3.ModRevision(key), "=", there.mod)
	}
	done, err = m.config.Client.Txn(ctx).If(compare).Then(put).Commit()
	switch {
	case err != nil:
		return m.lost(err)
	case !done.Succeeded:
		return errors.New("the member's key has changed meanwhile")
	}
	m.config.Logger.Info("pace/etcd: joined", "provider", m.config.Provider, "id", m.config.ID)
	m.holdsKey(now, historyOf(done.Header).revision)
	return nil
}

var errDisplaced = errors.New("displaced")

// holdsKey records that the member key belongs to this instance.
func (m *membership) holdsKey(at time.Time, revision int64) {
	m.registered, m.displaced, m.began, m.since = true, false, true, revision
	every := max(time.Second, time.Duration(m.members.Load())*time.Second/watched)
	m.reports = at.Add(every + rand.N(every))
}

// lost checks whether an error says that the lease has expired.
func (m *membership) lost(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		m.lease, m.registered = 0, false
	}
	return err
}

// record returns the report.
func (m *membership) record() string {
	return report{at: m.config.Wall(), demand: min(max(m.to.Demand(), 0), maxDemand), bound: m.config.Propagation}.encode()
}

// watched is about the number of reports a second that an instance receives.
const watched = 64

// wait gives the time until the next work is due.
func (m *membership) wait(now time.Time) time.Duration {
	wait := m.renewsIn(now)
	if m.displaced {
		return max(min(wait, m.config.TTL/4), time.Millisecond)
	}
	return max(min(wait, m.reportsIn(now)), time.Millisecond)
}

func (m *membership) renewsIn(now time.Time) time.Duration {
	return m.ttl/3 - now.Sub(m.renewed)
}

func (m *membership) reportsIn(now time.Time) time.Duration { return m.reports.Sub(now) }

func (m *membership) show() {
	t := m.tenure
	m.shown.Store(&t)
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// leaving bounds how long giving up the membership may take. Otherwise the place is free after the TTL.
const leaving = time.Second

// end revokes the lease, and thus deletes the key, so that others get the part at once.
func (m *membership) end(ctx context.Context) {
	if m.lease == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	if _, err := m.config.Client.Revoke(ctx, m.lease); err != nil {
		m.config.Logger.Info("pace/etcd: left without a word: the part is free when the lease expires",
			"provider", m.config.Provider, "id", m.config.ID, "ttl", m.ttl, "error", err.Error())
	}
}
