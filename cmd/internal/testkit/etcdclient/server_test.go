package etcdclient_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/network"
)

const long = 20 * time.Second

// put writes a key within a time.
func put(t *testing.T, c *clientv3.Client, key, value string, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := c.Put(ctx, key, value)
	return err
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// TestStartAndStop checks that each server has its own ports and data, and ends with Stop.
func TestStartAndStop(t *testing.T) {
	one, other := etcd.Start(t), etcd.Start(t)
	if one.Addr == other.Addr {
		t.Errorf("two servers on %s", one.Addr)
	}
	if err := put(t, etcdclient.New(t, one.Addr), "river", "wide", long); err != nil {
		t.Fatal(err)
	}
	if got := one.CTL("get", "river", "--print-value-only"); got != "wide" {
		t.Errorf("the key is %q: want wide", got)
	}
	if got := other.CTL("get", "river"); got != "" {
		t.Errorf("the other server has the key: %q", got)
	}
	one.Stop()
	one.Stop()
	if answers(one.Addr) || one.Running() {
		t.Errorf("%s still answers after Stop", one.Addr)
	}
	if !answers(other.Addr) || !other.Running() {
		t.Errorf("the other server has ended too")
	}
}

// TestPause checks that a paused server does not answer, and that it later handles the requests
// that wait.
func TestPause(t *testing.T) {
	s := etcd.Start(t)
	c := etcdclient.New(t, s.Addr)
	if err := put(t, c, "river", "wide", long); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	if s.Running() {
		t.Error("Running reports true for a paused server")
	}
	if err := put(t, c, "river", "deep", 100*time.Millisecond); err == nil {
		t.Fatal("a paused server answers")
	}
	late := make(chan error, 1)
	go func() { late <- put(t, c, "lake", "calm", long) }()
	s.Resume()
	if err := <-late; err != nil {
		t.Errorf("the request sent during the pause: %v", err)
	}
}

// TestRestart checks that a killed server restarts on its ports, with or without its data, and
// that clients reconnect.
func TestRestart(t *testing.T) {
	s := etcd.Start(t)
	c := etcdclient.New(t, s.Addr)
	if err := put(t, c, "river", "wide", long); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	addr, pid := s.Addr, s.PID()
	s.Kill()
	if answers(addr) {
		t.Fatal("the server answers after Kill")
	}
	s.Restart()
	if s.Addr != addr || s.PID() == pid || !s.Running() {
		t.Errorf("%s, process %d, after %s, %d", s.Addr, s.PID(), addr, pid)
	}
	if got := s.CTL("get", "river", "--print-value-only"); got != "wide" {
		t.Errorf("after Restart the key is %q: want wide", got)
	}
	s.RestartEmpty()
	if got := s.CTL("get", "river"); got != "" {
		t.Errorf("after RestartEmpty the key still exists: %q", got)
	}
	if err := put(t, c, "lake", "calm", long); err != nil {
		t.Errorf("the client does not reconnect: %v", err)
	}
}

// TestClientThrough checks that a cut link affects only the client behind it.
func TestClientThrough(t *testing.T) {
	s := etcd.Start(t)
	link := network.New(t, s.Addr)
	near, far := etcdclient.New(t, s.Addr), etcdclient.New(t, link.Addr)
	if err := put(t, far, "river", "wide", long); err != nil {
		t.Fatal(err)
	}
	link.HalfOpen()
	if err := put(t, far, "river", "deep", 100*time.Millisecond); err == nil {
		t.Error("a client does not use its link")
	}
	if err := put(t, near, "lake", "calm", long); err != nil {
		t.Errorf("the other client: %v", err)
	}
	link.Heal()
	if err := put(t, far, "river", "deep", long); err != nil {
		t.Errorf("after Heal: %v", err)
	}
}

// TestShortLeases checks that the server grants leases of 1 s.
func TestShortLeases(t *testing.T) {
	lease, err := etcdclient.New(t, etcd.Start(t).Addr).Grant(t.Context(), 1)
	if err != nil || lease.TTL != 1 {
		t.Errorf("%+v, %v: want 1 s", lease, err)
	}
}
