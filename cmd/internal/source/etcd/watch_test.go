package etcd

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/headgate/headgate/internal/config/source"
)

// slowReceiver takes each change for a time.
type slowReceiver struct {
	takes   time.Duration
	changed int
	reached []time.Time
}

func (r *slowReceiver) Changed(source.Change) {
	time.Sleep(r.takes) //nolint:forbidigo // sleep: the time of the bubble in TestBusyWatch
	r.changed++
}
func (r *slowReceiver) Reached(at time.Time) { r.reached = append(r.reached, at) }
func (r *slowReceiver) Failed(error)         {}

// watchAt makes a confirmed watch of a receiver that has everything up to revision 10 of term 5.
func watchAt(t *testing.T, to source.Receiver) *watching {
	t.Helper()
	s, err := Open(Config{Endpoints: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{Source: s, to: to, read: true, history: history{1, 5, 10}}
	f.contents.set(nil)
	return &watching{follower: f, created: true, probing: true, revision: 10}
}

// answer is an answer of the member that has the watch.
func answer(cluster, term uint64, revision int64, keys ...string) *etcdserverpb.WatchResponse {
	r := &etcdserverpb.WatchResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: cluster, RaftTerm: term, Revision: revision}}
	for _, key := range keys {
		r.Events = append(r.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte(DefaultPrefix + key), Value: []byte("x"), ModRevision: revision}})
	}
	return r
}

// TestLaggingMember: a member that lags is no lost data. Another cluster is, and so is a quorum that has less than the receiver.
func TestLaggingMember(t *testing.T) {
	t.Parallel()
	created := answer(1, 4, 7)
	created.Created = true
	w := watchAt(t, &slowReceiver{})
	for _, r := range []*etcdserverpb.WatchResponse{created, answer(1, 4, 8), answer(1, 5, 11, "customers/a")} {
		if err := w.heard(r); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	if err := w.heard(answer(2, 5, 12)); err != errHistory { //nolint:errorlint // it is not wrapped
		t.Errorf("another cluster: %v", err)
	}
	for _, quorum := range []history{{1, 5, 10}, {1, 4, 20}, {2, 5, 20}} {
		if err := w.probed(probe{history: quorum}); err != errHistory { //nolint:errorlint // it is not wrapped
			t.Errorf("the quorum has %+v: %v", quorum, err)
		}
	}
}

// TestBusyWatch: a watch that always has changes reaches each probe in the end, and is not silent. The time that the receiver
// takes does not count. A watch without changes must answer within the timeout.
func TestBusyWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &slowReceiver{takes: 2 * defaultTimeout}
		w := watchAt(t, to)
		first := time.Now()
		for n := range int64(5) { // The quorum is always 3 revisions ahead.
			if err := w.probed(probe{sent: time.Now(), history: history{1, 5, 14 + n}}); err != nil {
				t.Error(err)
			}
			if err := w.heard(answer(1, 5, 11+n, "customers/a")); err != nil {
				t.Error(err)
			}
			if err := w.due(t.Context(), time.Now().Add(defaultTimeout), nil); err != nil {
				t.Errorf("after change %d: %v", n, err)
			}
		}
		if to.changed != 5 || len(to.reached) != 1 || !to.reached[0].Equal(first) {
			t.Errorf("%d changes, and reached %v: want 5, and the first probe of %v", to.changed, to.reached, first)
		}
		if err := w.probed(probe{sent: time.Now(), history: history{1, 5, 20}}); err != nil {
			t.Error(err)
		}
		if err := w.heard(answer(1, 5, 15)); err != nil {
			t.Error(err)
		}
		if err := w.due(t.Context(), time.Now().Add(defaultTimeout+1), nil); err != errSilent { //nolint:errorlint // it is not wrapped
			t.Errorf("a silent watch: %v", err)
		}
	})
}
