package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/pace"
)

// braking has a brake to be sent to all instances.
type braking struct {
	mu     sync.Mutex
	brake  *BrakeInfo
	wanted chan struct{} // signals a new brake
}

// Brake slows all instances down, some milliseconds later. A brake replaces the current one if it has a
// lower percentage, or the same and a later end. Other brakes are not sent. A brake ends after at most
// an hour. Brake returns at once. A brake that cannot be sent within 2 s is a fault.
func (s *Source) Brake(b pace.Brake) {
	if s.config.Client == nil {
		return // For a Source that New did not make, Follow gives the error.
	}
	now := s.now()
	info := BrakeInfo{Until: b.Until, Percent: min(max(b.Percent, 0), 100), Reason: b.Reason, By: s.config.ID}
	if last := now.Add(maxBrake); info.Until.After(last) {
		info.Until = last
	}
	if !info.Until.After(now) || info.Percent == 100 {
		return
	}
	w := &s.braking
	w.mu.Lock()
	defer w.mu.Unlock()
	if !info.stronger(w.brake, now) {
		return
	}
	w.brake = &info
	select {
	case w.wanted <- struct{}{}:
	default:
	}
}

// now gives the wall time.
func (s *Source) now() time.Time { return s.config.Wall().Time() }

// take gives the brake to be sent, or nil.
func (w *braking) take() *BrakeInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.brake
	w.brake = nil
	return b
}

// telling bounds how long a brake may take to be sent.
const telling = 2 * time.Second

// tell writes brakes until ctx is done.
func (s *Source) tell(ctx context.Context, k keys, fault func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.braking.wanted:
		}
		b := s.braking.take()
		if b == nil {
			continue
		}
		if err := s.write(ctx, k, b); err != nil && ctx.Err() == nil {
			fault(fmt.Errorf("pace/etcd: the others did not get the brake of %d %%: %w", b.Percent, err))
		}
	}
}

// write writes a brake, unless a brake of the same strength is active. Its key expires with the brake.
func (s *Source) write(ctx context.Context, k keys, b *BrakeInfo) error {
	ctx, cancel := context.WithTimeout(ctx, telling)
	defer cancel()
	lease := clientv3.NoLease
	for range 4 {
		there, err := s.config.Client.Get(ctx, k.brake())
		if err != nil {
			return err
		}
		kv := first(convertAll(there.Kvs))
		if kv != nil {
			if present, err := parseBrake(kv.value); err == nil && present.near(s.now()) && !b.stronger(present, s.now()) {
				return nil // An unused lease expires.
			}
		}
		if lease == clientv3.NoLease {
			seconds := int64(b.Until.Sub(s.now())/time.Second) + 1
			granted, err := s.config.Client.Grant(ctx, max(seconds, 1))
			if err != nil {
				return err
			}
			lease = granted.ID
		}
		done, err := s.config.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(k.brake()), "=", markOf(kv).mod)).
			Then(clientv3.OpPut(k.brake(), b.encode(), clientv3.WithLease(lease))).Commit()
		if err != nil || done.Succeeded {
			return err
		}
	}
	return errors.New("others write brakes all the time")
}
