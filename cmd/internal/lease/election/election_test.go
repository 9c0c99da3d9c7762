package election_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/cmd/internal/lease/election"
	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/network"
)

func TestMain(m *testing.M) { leak.Main(m) }

// longest is longer than any event that these tests wait for, on a busy machine.
const longest = 30 * time.Second

// seen is a Status with the time at which it was shown.
type seen struct {
	election.Status

	at time.Time
}

// member is one server of a group.
type member struct {
	tb       testing.TB
	election *election.Election
	stop     func()

	mu  sync.Mutex // Guards the field below.
	all []seen
}

// quick is a TTL with early take-overs. With calm, a master keeps its term and its calls end in time, also on a busy machine.
const quick, calm = time.Second, 4 * time.Second

// join runs a member of the group eu through an address of etcd.
func join(tb testing.TB, at, address string, ttl time.Duration) *member {
	tb.Helper()
	e, err := election.New(election.Config{
		Open: func(life context.Context) (*clientv3.Client, error) {
			return clientv3.New(clientv3.Config{Endpoints: []string{at}, Context: life, Logger: clientv3.NewCtxClient(life).GetLogger()})
		},
		Group: "eu", Address: address, TTL: ttl,
	})
	if err != nil {
		tb.Fatal(err)
	}
	m := &member{tb: tb, election: e}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var ended sync.WaitGroup
	ended.Go(func() {
		e.Run(ctx, func(s election.Status) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.all = append(m.all, seen{s, time.Now()})
		})
	})
	m.stop = func() { cancel(); ended.Wait() }
	tb.Cleanup(m.stop)
	return m
}

// history gives all that was shown.
func (m *member) history() []seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// await waits for the last status.
func (m *member) await(what string, done func(election.Status) bool) seen {
	m.tb.Helper()
	for end := time.Now().Add(longest); time.Now().Before(end); {
		if all := m.history(); len(all) > 0 && done(all[len(all)-1].Status) {
			return all[len(all)-1]
		}
		<-time.After(2 * time.Millisecond)
	}
	m.tb.Fatalf("waiting until %s; seen: %+v", what, m.history())
	return seen{}
}

func (m *member) wins() seen {
	m.tb.Helper()
	return m.await("it is the master", func(s election.Status) bool { return s.Mine && time.Now().Before(s.Until) })
}

func (m *member) follows(master string) seen {
	m.tb.Helper()
	return m.await("the master is "+master, func(s election.Status) bool { return !s.Mine && s.Master == master })
}

// TestTakeOver: the first server is the master, the second one knows its address, and is the master as soon as the first one stops.
// Terms grow, also from those of a server without election, which are times.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	begun := uint64(time.Now().UnixMilli())
	a := join(t, server.Addr, "a:1", calm)
	first := a.wins()
	b := join(t, server.Addr, "b:1", calm)
	b.follows("a:1")
	a.stop()
	if last := a.history(); last[len(last)-1].Mine {
		t.Errorf("the stopped server still says that it is the master: %+v", last)
	}
	second := b.wins()
	if first.Term <= begun || second.Term <= first.Term {
		t.Errorf("terms %d and %d, want growing ones above %d", first.Term, second.Term, begun)
	}
	if s := a.election.Stats(); s.Won != 1 || s.Lost != 1 {
		t.Errorf("stats %+v", s)
	}
}

// TestPartition: a master that etcd cannot hear stops before another one begins, and follows it when the network is back.
func TestPartition(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	link := network.New(t, server.Addr)
	a := join(t, link.Addr, "a:1", quick)
	a.wins()
	b := join(t, server.Addr, "b:1", quick)
	b.follows("a:1")
	link.HalfOpen()
	until := a.wins().Until
	won := b.wins()
	gone := a.await("it knows no master", func(s election.Status) bool { return !s.Mine })
	for _, s := range a.history() {
		if s.Mine {
			until = s.Until
		}
	}
	if !until.Before(won.at) {
		t.Errorf("the first master may work until %v, and the second one begins at %v", until, won.at)
	}
	if gone.Master != "" {
		t.Errorf("a server without etcd says that %q is the master", gone.Master)
	}
	link.Heal()
	a.follows("b:1")
}

// TestTermsGrowWithTime: a master writes its key again from time to time, so that the next term leaves a distance for the numbers of
// reports to a parent. The key stays the same one for all others.
func TestTermsGrowWithTime(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	a := join(t, server.Addr, "a:1", quick)
	a.wins()
	client := etcdclient.New(t, server.Addr)
	for end := time.Now().Add(longest); ; {
		got, err := client.Get(t.Context(), election.DefaultPrefix+"eu/master")
		if err != nil {
			t.Fatal(err)
		}
		if kvs := got.Kvs; len(kvs) == 1 && kvs[0].GetModRevision() > kvs[0].GetCreateRevision() && string(kvs[0].GetValue()) == "a:1" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the key is not written again: %v", got.Kvs)
		}
		<-time.After(10 * time.Millisecond)
	}
	renewals := len(a.history())
	a.await("a renewal after the write", func(s election.Status) bool { return s.Mine && len(a.history()) > renewals })
}

// TestFullEtcd: an etcd without space takes no writes, but renewals. The master stays.
func TestFullEtcd(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t, "--quota-backend-bytes=4000000")
	a := join(t, server.Addr, "a:1", calm)
	before := a.wins()
	client := etcdclient.New(t, server.Addr)
	var err error
	for i := 0; err == nil; i++ {
		_, err = client.Put(t.Context(), fmt.Sprint("filler", i), strings.Repeat("x", 200_000))
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	for end := time.Now().Add(longest); a.election.Stats().Failures == 0 && time.Now().Before(end); {
		<-time.After(2 * time.Millisecond)
	}
	renewals := len(a.history())
	a.await("a renewal after the failed write", func(s election.Status) bool {
		return s.Mine && s.Term == before.Term && len(a.history()) > renewals
	})
}

// TestDeletedKey: an operator deletes the key of the master, and it notices with its next renewal.
func TestDeletedKey(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	a := join(t, server.Addr, "a:1", quick)
	first := a.wins()
	server.CTL("del", election.DefaultPrefix+"eu/master")
	a.await("it has another term", func(s election.Status) bool { return s.Mine && s.Term > first.Term })
}

// TestKilledEtcd: without etcd there is no master. After that, terms grow on.
func TestKilledEtcd(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	a := join(t, server.Addr, "a:1", quick)
	first := a.wins()
	server.Kill()
	a.await("no master is known", func(s election.Status) bool { return s == election.Status{} })
	if a.election.Stats().Failures == 0 {
		t.Error("no failure was counted")
	}
	server.Restart()
	if again := a.wins(); again.Term <= first.Term {
		t.Errorf("term %d after %d", again.Term, first.Term)
	}
}

// TestWrongBase: a base that is no number elects no master, and leaves the key free.
func TestWrongBase(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	server.CTL("put", election.DefaultPrefix+"eu/base", "x")
	a := join(t, server.Addr, "a:1", quick)
	for end := time.Now().Add(longest); a.election.Stats().Failures < 2 && time.Now().Before(end); {
		<-time.After(2 * time.Millisecond)
	}
	for _, s := range a.history() {
		if s.Mine {
			t.Errorf("a master with the status %+v", s)
		}
	}
	server.CTL("del", election.DefaultPrefix+"eu/base")
	a.wins()
}

// TestConfig has the settings that New refuses.
func TestConfig(t *testing.T) {
	open := func(context.Context) (*clientv3.Client, error) { return nil, context.Canceled }
	for want, c := range map[string]election.Config{
		"Open":    {Group: "eu", Address: "a:1"},
		"Group":   {Open: open, Group: "e/u", Address: "a:1"},
		"Address": {Open: open, Group: "eu"},
		"Prefix":  {Open: open, Group: "eu", Address: "a:1", Prefix: "x"},
		"TTL":     {Open: open, Group: "eu", Address: "a:1", TTL: time.Millisecond},
	} {
		if _, err := election.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
