//go:build soak

package acceptance

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/network"
)

const (
	// treeCapacity is what the holders share, in units a second, and treeSafe is the safe amount of each.
	treeCapacity, treeSafe = 1000, 1
	treeHolders, treeCalls = 500, 3000 // holders, and calls a second of all of them
	// treePatience bounds the time after a failure until all of the capacity is used.
	treePatience = 30 * time.Second

	treeNode = `version: 1
server:
  grpc: {address: %q, auth: token}
  http: off
  callers: [{name: server, tokens: [%q], scopes: [lease]}, {name: web, tokens: [%q], scopes: [lease]}]
lease: {holders: {server: {server: true}}, length: %s, refresh: 500ms, %s}
`
	treeResources = `resources: [{match: "db/*", capacity: 1000/s, safe: 1/s}]`
)

// treeServer is a server of a tree.
type treeServer struct {
	at, path string // its address and its configuration
	run      *instance
}

// bigTree is a tree of servers with holders below the leaves. The root and the two parents are groups of two servers, whose masters are
// elected on etcd. The four leaves are alone.
type bigTree struct {
	t      *testing.T
	mode   client.OnLoss
	etcd   *etcd.Server
	groups [7][]*treeServer // the root, the parents, the leaves
	links  []*network.Link  // between the second leaf and the servers of its parent
	tally  tally
	began  time.Time
	marks  []mark
}

func newBigTree(t *testing.T, mode client.OnLoss) *bigTree {
	t.Helper()
	b := &bigTree{t: t, mode: mode, etcd: etcd.Start(t), tally: tally{units: map[int64]int{}}}
	token := file(t, "server")
	for i := range b.groups {
		servers, length, rest := 2, "6s", treeResources
		if i > 0 {
			parent := 0
			length = "5s"
			if i > 2 {
				parent, servers, length = 1+(i-3)/2, 1, "4s"
			}
			rest = fmt.Sprintf("servers: [%s], token_file: %q, on_loss: %s", b.addresses(parent, i == 4), token, mode)
		}
		if servers == 2 {
			rest += fmt.Sprintf(", election: {etcd: [%q], group: group-%d, ttl: 1s}", b.etcd.Addr, i)
		}
		for range servers {
			at := freeAddress(t)
			path := file(t, fmt.Sprintf(treeNode, at, tokenDigest("server"), tokenDigest("web"), length, rest)+adminAnywhere)
			b.groups[i] = append(b.groups[i], &treeServer{at: at, path: path, run: launchServer(t, path)})
		}
	}
	for i := range 4 {
		plan := spendersPlan{At: b.groups[3+i][0].at, Mode: mode, Holders: treeHolders / 4, Calls: treeCalls / 4}
		spendApart(t, plan, &b.tally)
	}
	b.began = time.Now()
	return b
}

// addresses gives those of a group, as a list of YAML without brackets. With linked, each has a link of its own.
func (b *bigTree) addresses(group int, linked bool) string {
	b.t.Helper()
	var all []string
	for _, s := range b.groups[group] {
		at := s.at
		if linked {
			link := network.New(b.t, at)
			b.links, at = append(b.links, link), link.Addr
		}
		all = append(all, strconv.Quote(at))
	}
	return strings.Join(all, ", ")
}

// master gives the server of a group that gives leases.
func (b *bigTree) master(group int) (master *treeServer) {
	b.t.Helper()
	if all := b.groups[group]; len(all) == 1 {
		return all[0]
	}
	eventually(b.t, fmt.Sprint("the master of group ", group), func() bool {
		for _, s := range b.groups[group] {
			if metric(b.t, s.run, "headgate_lease_master") == 1 {
				master = s
			}
		}
		return master != nil
	})
	return master
}

// end ends a server by a signal, and starts it again after a time.
func (b *bigTree) end(s *treeServer, by syscall.Signal, away time.Duration) {
	b.t.Helper()
	if err := s.run.command.Process.Signal(by); err != nil {
		b.t.Fatal(err)
	}
	<-s.run.ended
	<-time.After(away)
	s.run = launchServer(b.t, s.path)
}

// takeOver kills the master of a group. The other server takes over, so that no lease ends: the holders spend at least half of the
// capacity in any two seconds.
func (b *bigTree) takeOver(group int) {
	b.t.Helper()
	const away, length = 8 * time.Second, 2 * time.Second
	killed := time.Now()
	b.end(b.master(group), syscall.SIGKILL, away)
	least := b.tally.least(killed, killed.Add(away), length)
	b.t.Logf("at least %d units in two seconds without the master", least)
	if least < treeCapacity {
		b.t.Errorf("%d units in two seconds without the master of group %d, want at least %d", least, group, treeCapacity)
	}
}

// withoutEtcd kills etcd. No group has a master, so that all leases end within 6 s. Then on_loss decides what each of the holders spends:
// nothing, its safe amount or all of its demand. When etcd is back, the new masters count the capacity as given for up to 6 s. Until
// they share all of it, the holders keep their safe amounts, but for the mode pessimistic.
func (b *bigTree) withoutEtcd() {
	b.t.Helper()
	const ended, measured = 9 * time.Second, 3 * time.Second
	b.etcd.Kill()
	<-time.After(ended)
	from := time.Now()
	<-time.After(measured + reported)
	got := b.tally.sum(tenthOf(from), tenthOf(from.Add(measured)))
	want := map[client.OnLoss]int{client.Pessimistic: 0, client.Safe: treeHolders * treeSafe * 3, client.Optimistic: treeCalls * 3}[b.mode]
	b.t.Logf("%d units in %v without etcd, about %d expected", got, measured, want)
	if got < want*8/10 || got > want*11/10+treeHolders/10 {
		b.t.Errorf("%d units in %v without etcd, want about %d", got, measured, want)
	}
	b.etcd.Restart()
	const length = 2 * time.Second
	back := time.Now()
	used := func() bool {
		to := time.Now().Add(-reported)
		from := to.Add(-length)
		return from.After(back) && b.tally.least(from, to, time.Second) > treeCapacity*9/10 && b.tally.worst(from, to, time.Second) < treeCapacity*11/10
	}
	for !used() && time.Since(back) < treePatience { // scene says that it took too long.
		<-time.After(tenth)
	}
	least := b.tally.least(back, time.Now().Add(-reported), length)
	b.t.Logf("at least %d units in %v after etcd is back, for %v", least, length, time.Since(back))
	if kept := treeHolders * treeSafe * 2; b.mode != client.Pessimistic && least < kept*8/10 {
		b.t.Errorf("%d units in %v after etcd is back, want about %d at least", least, length, kept)
	}
}

// partition cuts the second leaf off from its parent: connections stay open, and no answer arrives.
func (b *bigTree) partition() {
	const away = 8 * time.Second
	for _, link := range b.links {
		link.HalfOpen()
	}
	<-time.After(away)
	for _, link := range b.links {
		link.Heal()
	}
}

// scene runs one failure, and waits until all of the capacity is used again, and no more, for three seconds in a row.
func (b *bigTree) scene(name string, fail func()) {
	b.t.Helper()
	const second, settled = int64(time.Second / tenth), 3
	b.marks = append(b.marks, mark{time.Now(), name})
	fail()
	over := tenthOf(time.Now())
	for first, good := over, int64(0); good < settled; {
		if time.Duration(first-over)*tenth > treePatience {
			b.t.Fatalf("the capacity of %d is not used within %v after %s; units by second: %v", treeCapacity, treePatience, name,
				b.tally.bySecond(b.began, time.Now()))
		}
		end := first + (good+1)*second
		<-time.After(time.Until(time.Unix(0, end*int64(tenth)).Add(reported)))
		if n := b.tally.sum(end-second, end); n < treeCapacity*9/10 || n > treeCapacity*11/10 {
			first, good = first+1, 0
			continue
		}
		if good++; good == settled {
			b.t.Logf("%5.1f s: all is used %v after %s", time.Since(b.began).Seconds(), time.Duration(first-over)*tenth, name)
		}
	}
}

// judge checks the bound of the mode from a time on, and writes the plot.
func (b *bigTree) judge(from time.Time) {
	b.t.Helper()
	to, line := time.Now().Add(-reported), bound(b.mode, time.Second)
	if b.mode == client.Optimistic {
		line = 0 // There is no bound.
	}
	for _, length := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second} {
		worst, most := b.tally.worst(from, to, length), bound(b.mode, length)
		b.t.Logf("%d units in the worst %v; the bound without optimistic is %d", worst, length, most)
		if worst > most && line > 0 {
			b.t.Errorf("%d units in %v, want at most %d", worst, length, most)
		}
	}
	b.t.Logf("units by second: %v", b.tally.bySecond(b.began, to))
	b.tally.plot(b.t, "on_loss_"+b.mode.String(), b.began, to, line, b.marks)
}

// bound gives the most units in a time: the capacity with 0.1 s of it, one unit for each holder, and in the mode safe the safe amounts.
// The mode optimistic has no bound.
func bound(mode client.OnLoss, length time.Duration) int {
	rate := treeCapacity
	if mode == client.Safe {
		rate += treeHolders * treeSafe
	}
	return int(float64(rate)*(length+tenth).Seconds()) + treeHolders
}

// TestSoakTreeOfProcesses has 500 holders in four processes, below a tree of ten servers and one etcd. Servers and etcd are killed, a leaf
// is partitioned, and the servers are restarted one by one. In each mode of on_loss, the units that are spent stay within the bound of
// the mode, and the whole capacity is used again after each failure.
func TestSoakTreeOfProcesses(t *testing.T) {
	for _, mode := range []client.OnLoss{client.Pessimistic, client.Safe, client.Optimistic} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBigTree(t, mode)
			b.scene("start", func() {})
			defer b.judge(time.Now())
			b.scene("kill -9 of a leaf", func() { b.end(b.groups[3][0], syscall.SIGKILL, 7*time.Second) })
			b.scene("kill -9 of a parent", func() { b.takeOver(1) })
			b.scene("kill -9 of the root", func() { b.takeOver(0) })
			b.scene("kill -9 of etcd", b.withoutEtcd)
			b.scene("partition of a leaf", b.partition)
			for i := len(b.groups) - 1; i >= 0; i-- {
				for _, s := range b.groups[i] {
					b.scene(fmt.Sprint("restart in group ", i), func() { b.end(s, syscall.SIGTERM, 0) })
				}
			}
		})
	}
}
