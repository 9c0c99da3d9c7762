package etcd_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"
	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
	"github.com/headgate/headgate/internal/config/source"
	server "github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/network"
)

// back is how soon a source must have what its new server has: 2 s, and what a busy machine adds.
const back = 2*time.Second + 13*time.Second

// within checks the time until a mirror has the objects.
func within(t *testing.T, what string, m *sourcetest.Mirror, has map[source.Key]string) {
	t.Helper()
	began := time.Now()
	m.Has(has)
	d := time.Since(began)
	if t.Logf("%s: in force after %v", what, d); d > back {
		t.Errorf("%s: in force after %v, want at most 2s on an idle machine", what, d)
	}
}

// behind gives a source that reaches a server through a link.
func behind(t *testing.T, link *network.Link) *etcd.Source {
	t.Helper()
	return (&place{prefix: "/test/"}).open(t, etcd.Config{Endpoints: []string{link.Addr}, Timeout: 5 * time.Second})
}

// putAt writes a customer. A cluster that elects a leader refuses writes for a while.
func putAt(t *testing.T, c *clientv3.Client, name, text string) {
	t.Helper()
	for end := time.Now().Add(sourcetest.Patience); ; {
		_, err := c.Put(t.Context(), "/test/customers/"+name, text)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestLeavesMemberWithoutLeader: a member that has lost its leader keeps its connections, and a forwarder then leads to another cluster,
// which was restored elsewhere. The source dials anew, and has the objects of the new cluster.
func TestLeavesMemberWithoutLeader(t *testing.T) {
	t.Parallel()
	members, other := server.StartCluster(t, 3), server.Start(t)
	putAt(t, etcdclient.New(t, members[0].Addr), "a", "old")
	link := network.New(t, members[0].Addr)
	m, _ := sourcetest.Follow(t, behind(t, link), nil)
	m.Has(map[source.Key]string{customer("a"): "old"})
	for n := range 3 { // The pauses differ.
		members[1].Kill()
		members[2].Kill()
		failures := -1
		m.Until("it fails for a while", func() bool {
			if failures < 0 {
				failures = len(m.Failures)
			}
			return len(m.Failures) >= failures+5
		})
		text := fmt.Sprint("new", n)
		putAt(t, etcdclient.New(t, other.Addr), "a", text)
		if link.Redirect(other.Addr); link.Live() == 0 && n == 0 {
			t.Log("the source has no connection to the old member at this moment")
		}
		within(t, "a member without a leader", m, map[source.Key]string{customer("a"): text})
		if n == 2 {
			break
		}
		members[1].Restart()
		link.Redirect(members[0].Addr)
		link.Reset()
		m.Until("it is back at the cluster", func() bool { return m.Objects[customer("a")].Text == "old" })
	}
}

// TestLeavesRemovedMember: a member is removed from its cluster, and the forwarder leads to one that is not.
func TestLeavesRemovedMember(t *testing.T) {
	t.Parallel()
	members := server.StartCluster(t, 3)
	client := etcdclient.New(t, members[1].Addr)
	putAt(t, client, "a", "x")
	link := network.New(t, members[0].Addr)
	m, _ := sourcetest.Follow(t, behind(t, link), nil)
	m.Has(map[source.Key]string{customer("a"): "x"})
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + members[0].Addr
	for _, member := range list.Members {
		if slices.Contains(member.GetClientURLs(), url) {
			if _, err := client.MemberRemove(t.Context(), member.GetID()); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.Until("it fails", func() bool { return len(m.Failures) > 0 })
	putAt(t, client, "a", "y")
	link.Redirect(members[1].Addr)
	within(t, "a removed member", m, map[source.Key]string{customer("a"): "y"})
}

// TestCompactedWhileCutOff: changes that etcd has compacted while the source was cut off are in force as soon as others.
func TestCompactedWhileCutOff(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	client := etcdclient.New(t, s.Addr)
	link := network.New(t, s.Addr)
	m, _ := sourcetest.Follow(t, behind(t, link), nil)
	m.UntilNow()
	for n, compacts := range []bool{false, true, true} {
		link.Cut()
		failures := -1
		m.Until("it is cut off for a while", func() bool {
			if failures < 0 {
				failures = len(m.Failures)
			}
			return len(m.Failures) >= failures+8
		})
		text := fmt.Sprint("x", n)
		putAt(t, client, "a", text+"before")
		r, err := client.Put(t.Context(), "/test/customers/a", text)
		if err != nil {
			t.Fatal(err)
		}
		if compacts {
			if _, err := client.Compact(t.Context(), r.Header.GetRevision()); err != nil {
				t.Fatal(err)
			}
		}
		link.Heal()
		within(t, fmt.Sprintf("cut off, compacted %t", compacts), m, map[source.Key]string{customer("a"): text})
	}
}
