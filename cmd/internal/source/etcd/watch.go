package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// probeEvery is the interval in which the newest revision is read from the quorum. A watch of a member that is
// partitioned from the others is silent, and so is a watch without changes: the read tells them apart. A shorter timeout
// makes it shorter.
const probeEvery = time.Second

var (
	errCompacted = errors.New("config/source/etcd: etcd has compacted the changes since the last read: everything is read again")
	errSilent    = errors.New("the watch has not answered in time")
)

// watching is one watch. It uses etcd's stream itself: the client library keeps changes that the receiver has not
// taken without a bound, and resumes after a progress notification, before which older servers may
// leave out changes.
type watching struct {
	*follower

	client    *clientv3.Client
	stream    etcdserverpb.Watch_WatchClient
	responses chan response
	probes    chan probe

	group      []event   // The changes of one transaction that may have more.
	groupBytes int       // The length of their values.
	groupAt    int64     // The revision of this transaction; 0 if there is none.
	revision   int64     // The newest revision that the watch has shown.
	progress   int64     // The last progress notification after which there was no change.
	waitsFor   *probe    // The probe that the watch has not reached yet.
	silent     time.Time // The time since which an answer is expected; zero if none is.
	created    bool      // etcd has confirmed the watch. Before, no probe uses the stream.
	probing    bool
	nextProbe  time.Time
}

type response struct {
	*etcdserverpb.WatchResponse

	err error
}

// probe is an answer of the quorum.
type probe struct {
	sent    time.Time
	history history
	err     error
}

// watch gives the receiver each change after the last revision, until something fails.
func (f *follower) watch(ctx context.Context, client *clientv3.Client) error {
	inner, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	stream, err := etcdserverpb.NewWatchClient(client.ActiveConnection()).
		Watch(clientv3.WithRequireLeader(inner), grpc.MaxCallRecvMsgSize(maxAnswer))
	if err != nil {
		return err
	}
	w := &watching{
		follower: f, client: client, stream: stream, responses: make(chan response), probes: make(chan probe, 1),
		revision: f.history.revision, silent: time.Now(),
	}
	work.Go(func() { w.receive(inner) })
	work.Go(func() { w.create(inner) })
	return w.run(inner, &work)
}

// create asks for all changes after the last revision. Fragment makes etcd divide large answers.
func (w *watching) create(ctx context.Context) {
	err := w.stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
		CreateRequest: &etcdserverpb.WatchCreateRequest{
			Key: []byte(w.keys.first()), RangeEnd: []byte(w.keys.end()), StartRevision: w.history.revision + 1, Fragment: true,
		},
	}})
	if err != nil {
		w.deliver(ctx, response{err: err})
	}
}

func (w *watching) receive(ctx context.Context) {
	for {
		r, err := w.stream.Recv()
		if !w.deliver(ctx, response{r, err}) || err != nil {
			return
		}
	}
}

func (w *watching) deliver(ctx context.Context, r response) bool {
	select {
	case w.responses <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *watching) run(ctx context.Context, work *sync.WaitGroup) error {
	tick := time.NewTicker(probeEvery / 4)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-w.responses:
			err = r.err
			if err == nil {
				err = w.heard(r.WatchResponse)
			}
		case p := <-w.probes:
			w.probing = false
			err = w.probed(p)
		case now := <-tick.C:
			err = w.due(ctx, now, work)
		}
		if err != nil {
			return err
		}
		w.foreign.log(w.config.Logger, &w.warned)
	}
}

// due starts a probe, and finds a watch that is silent.
func (w *watching) due(ctx context.Context, now time.Time, work *sync.WaitGroup) error {
	if !w.silent.IsZero() && now.Sub(w.silent) > w.config.Timeout {
		return errSilent
	}
	if !w.created || w.probing || now.Before(w.nextProbe) {
		return nil
	}
	w.probing, w.nextProbe = true, now.Add(min(probeEvery, w.config.Timeout))
	work.Go(func() { w.probes <- w.probe(ctx) })
	return nil
}

// probe reads the newest revision from the quorum. Then it requests a notification of the watch's progress.
func (w *watching) probe(ctx context.Context) probe {
	inner, cancel := context.WithTimeout(ctx, w.config.Timeout)
	defer cancel()
	p := probe{sent: time.Now()}
	r, err := w.client.Get(clientv3.WithRequireLeader(inner), w.keys.first(), clientv3.WithKeysOnly())
	if err != nil {
		p.err = err
		return p
	}
	p.history = historyOf(r.Header)
	p.err = w.stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{
		ProgressRequest: &etcdserverpb.WatchProgressRequest{},
	}})
	return p
}

// probed compares the answer of the quorum with what the watch has shown.
func (w *watching) probed(p probe) error {
	if p.err != nil {
		return p.err
	}
	if err := w.history.follows(p.history); err != nil {
		return err
	}
	if w.waitsFor == nil { // A former probe comes first: a busy watch would always be behind the newest one.
		w.waitsFor, w.silent = &p, time.Now()
	}
	w.reach(w.revision)
	return nil
}

// reach says that the watch has shown everything up to a revision.
func (w *watching) reach(revision int64) {
	w.revision = max(w.revision, revision)
	if w.waitsFor == nil || w.revision < w.waitsFor.history.revision {
		return
	}
	at := w.waitsFor.sent
	w.waitsFor, w.silent, w.answered = nil, time.Time{}, true
	w.to.Reached(at)
}

// heard takes one answer of the watch.
func (w *watching) heard(r *etcdserverpb.WatchResponse) error {
	later := historyOf(r.GetHeader())
	switch {
	case r.GetCompactRevision() != 0:
		return errCompacted
	case r.GetCanceled():
		return rpctypes.Error(fmt.Errorf("etcd has ended the watch: %s", r.GetCancelReason()))
	case later.cluster != w.history.cluster:
		return errHistory // The revision and the term say nothing: they are the member's own, which may lag. Probes have the quorum's.
	case r.GetCreated():
		w.silent, w.created = time.Time{}, true
		return nil
	case len(r.GetEvents()) == 0 && !r.GetFragment():
		w.progressed(later.revision)
		return nil
	}
	err := w.takeEvents(r)
	if !w.silent.IsZero() { // The watch is not silent. Also, the time that the receiver takes is not the server's.
		w.silent = time.Now()
	}
	return err
}

// progressed takes a notification. The next watch begins after it only if the notification after it came without a
// change between: older servers may notify before they send the changes.
func (w *watching) progressed(revision int64) {
	w.history.revision = max(w.history.revision, w.progress)
	w.progress = revision
	w.reach(revision)
}
