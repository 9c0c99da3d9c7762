package election_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lease/election"
	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/network"
)

// TestLeavesMemberWithoutLeader: a member of etcd has lost its leader and keeps its connections. The forwarder before it then leads to another
// cluster, and a server of the group becomes its master.
func TestLeavesMemberWithoutLeader(t *testing.T) {
	t.Parallel()
	members, other := etcd.StartCluster(t, 3), etcd.Start(t)
	link := network.New(t, members[0].Addr)
	m := join(t, link.Addr, "a:1", quick)
	m.await("it is the master", func(s election.Status) bool { return s.Mine })
	members[1].Kill()
	members[2].Kill()
	m.await("its tenure has ended", func(s election.Status) bool { return !s.Mine })
	failures := m.election.Stats().Failures
	for end := time.Now().Add(longest); m.election.Stats().Failures < failures+10; { // The client's own pauses have grown.
		if time.Now().After(end) {
			t.Fatal("it does not try again")
		}
		<-time.After(2 * time.Millisecond)
	}
	began := time.Now()
	link.Redirect(other.Addr)
	m.await("it is the master again", func(s election.Status) bool { return s.Mine })
	d := time.Since(began)
	if t.Logf("the master of the new cluster after %v", d); d > 15*time.Second {
		t.Errorf("it is the master after %v, want at most 2s on an idle machine", d)
	}
}
