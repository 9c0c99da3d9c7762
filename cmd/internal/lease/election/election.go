package election

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/cmd/internal/source/etcd"
)

// Status is the master of a group as this server knows it, and the term of this server if it is the master.
type Status struct {
	// Master is the address of the master, or "" if none is known. It comes from etcd: check it before use.
	Master string
	// Mine says that this server is the master until Until, by the monotonic clock. The next Status may move Until.
	Mine  bool
	Until time.Time
	// Term is larger than the term of every earlier master. It is 0 unless Mine.
	Term uint64
}

// Stats are the counters of an Election.
type Stats struct {
	// Won counts how often this server became the master, Lost how often it ceased to be, and Failures the failed attempts to
	// reach etcd. Writes counts the transactions with marks.
	Won, Lost, Failures, Writes uint64
}

// Election takes part in the elections of one group. Run may be called once. The other methods are safe for concurrent use.
type Election struct {
	config Config
	keys   keys
	stats  struct{ won, lost, failures, writes atomic.Uint64 }
	show   func(Status)

	granted clientv3.LeaseID // the lease with which this server last wrote the master's key, or 0
	heard   time.Time        // of the last answer of etcd
	shown   Status
	quiet   time.Time // no warning before this time

	turn   int64 // the revision of the last write of marks; used by Write
	turned bool  // turn is known

	mu     sync.Mutex // Guards the fields below.
	client *clientv3.Client
	end    context.CancelFunc
	mine   *tenure // nil unless this server is the master
}

// keys are the names of the keys of a group.
type keys struct{ master, base, turn, marks string }

// tenure is the time of this server as the master.
type tenure struct {
	lease    clientv3.LeaseID
	revision int64 // the create revision of the key
	term     uint64
	ttl      time.Duration
	sent     time.Time // of the last renewal
	written  time.Time // of the last write of the key
	until    time.Time
}

// New returns an Election that has not begun.
func New(c Config) (*Election, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	base := c.Prefix + c.Group + "/"
	return &Election{config: c, keys: keys{base + "master", base + "base", base + "turn", base + "marks/"}}, nil
}

// Stats reads the counters.
func (e *Election) Stats() Stats {
	return Stats{Won: e.stats.won.Load(), Lost: e.stats.lost.Load(), Failures: e.stats.failures.Load(), Writes: e.stats.writes.Load()}
}

// Run takes part until ctx ends. It calls show with each new Status, from its own goroutine: show must not block for long. When
// ctx ends, a master says that it is none, and then deletes its key, so that another server takes over at once.
func (e *Election) Run(ctx context.Context, show func(Status)) {
	e.show, e.heard = show, time.Now()
	show(Status{})
	for ctx.Err() == nil {
		if err := e.round(ctx); err != nil && ctx.Err() == nil {
			e.failed(err)
			pause(ctx, e.config.TTL/20+rand.N(e.config.TTL/20))
		}
	}
	e.leave(ctx)
}

// round does one step: it renews the key of this server, or follows the key of another one, or writes the key.
func (e *Election) round(ctx context.Context) error {
	ctx = clientv3.WithRequireLeader(ctx) // A member without a leader refuses at once.
	client, err := e.open(ctx)
	if err != nil {
		return err
	}
	if t := e.tenure(); t != nil {
		return e.serve(ctx, client, t)
	}
	within, cancel := context.WithTimeout(ctx, e.patience())
	defer cancel()
	got, err := client.Get(within, e.keys.master)
	if err != nil {
		return err
	}
	e.heard = time.Now()
	if len(got.Kvs) == 0 {
		return e.campaign(ctx, client)
	}
	kv := got.Kvs[0]
	if e.granted != 0 && clientv3.LeaseID(kv.GetLease()) == e.granted {
		e.display(Status{}) // The answer to the own write was lost, or the tenure has ended: begin again.
		_, err := client.Revoke(within, e.granted)
		return err
	}
	master := string(kv.GetValue()[:min(len(kv.GetValue()), maxAddress)])
	if e.shown.Master != master {
		e.config.Log.Info("lease/election: another server is the master", "group", e.config.Group, "master", master)
	}
	e.display(Status{Master: master})
	return e.await(ctx, client, got.Header.GetRevision()+1)
}

// patience bounds a call.
func (e *Election) patience() time.Duration { return max(e.config.TTL/4, 250*time.Millisecond) }

// await waits for a change of the key, and returns from time to time anyway.
func (e *Election) await(ctx context.Context, client *clientv3.Client, from int64) error {
	ctx, cancel := context.WithTimeout(ctx, e.config.TTL/2)
	defer cancel()
	for r := range client.Watch(clientv3.WithRequireLeader(ctx), e.keys.master, clientv3.WithRev(from)) {
		if err := r.Err(); err != nil && ctx.Err() == nil {
			return err
		}
		if len(r.Events) > 0 {
			return nil
		}
	}
	return nil
}

// failed notes an error. After a TTL without an answer, no master is known.
func (e *Election) failed(err error) {
	e.stats.failures.Add(1)
	e.reset(err)
	now := time.Now()
	if e.tenure() == nil && now.Sub(e.heard) > e.config.TTL {
		e.display(Status{})
	}
	const every = 10 * time.Second
	if now.After(e.quiet) {
		e.quiet = now.Add(every)
		e.config.Log.Warn("lease/election: etcd does not answer: check that its members run and have a leader, and the credentials",
			"group", e.config.Group, "error", err.Error())
	}
}

// display calls show if there is news.
func (e *Election) display(s Status) {
	if s != e.shown {
		e.shown = s
		e.show(s)
	}
}

// tenure returns the tenure of this server, or nil.
func (e *Election) tenure() *tenure {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mine
}

func (e *Election) setTenure(t *tenure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mine = t
}

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// open gives the client, which it makes if there is none.
func (e *Election) open(ctx context.Context) (*clientv3.Client, error) {
	e.mu.Lock()
	client := e.client
	e.mu.Unlock()
	if client != nil {
		return client, nil
	}
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	client, err := e.config.Open(life)
	stop()
	if err != nil {
		end()
		return nil, fmt.Errorf("lease/election: a client of etcd: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.client, e.end = client, end
	return client, nil
}

// reset ends a client whose credentials are no longer valid, or whose member of etcd cannot serve. The next round makes another one, with
// the present password, which resolves and dials the addresses again.
func (e *Election) reset(err error) {
	silent := errors.Is(err, context.DeadlineExceeded) && time.Since(e.heard) > e.config.TTL/2
	if silent || etcd.LeavesServer(err) {
		e.close()
		return
	}
	for _, one := range []error{
		rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserNotFound, rpctypes.ErrAuthOldRevision,
	} {
		if errors.Is(rpctypes.Error(err), one) {
			e.close()
			return
		}
	}
}

// close ends the client.
func (e *Election) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client != nil {
		_ = e.client.Close() // It fails only with what end also does.
		e.end()
		e.client, e.end = nil, nil
	}
}
