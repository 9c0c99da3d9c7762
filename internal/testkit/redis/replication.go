package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

func replication(node *Server) (map[string]string, error) {
	text, err := node.text("INFO", "replication")
	return fields(text), err
}

// WaitReplicated waits until all running replicas have the current data of their master. This
// data survives the end of the master. (WAIT only covers the writes of its own connection.)
func (c *Cluster) WaitReplicated(master *Server) {
	c.tb.Helper()
	if err := caughtUp(master, c.Replicas(master)); err != nil {
		c.tb.Fatal(err)
	}
}

// WaitReplicated waits until all running replicas have the current data of the master.
func (s *Sentinel) WaitReplicated() {
	s.tb.Helper()
	master := s.Master()
	var replicas []*Server
	for _, node := range s.Nodes {
		if node != master && node.Running() {
			replicas = append(replicas, node)
		}
	}
	if err := caughtUp(master, replicas); err != nil {
		s.tb.Fatal(err)
	}
}

// Follow makes the server a replica of master, and waits until the replica gets the writes of its master. With
// TLS, the servers need the setting tls-replication.
//
// A replica whose link is up may wait for up to a second until its master sends the first write. So Follow
// publishes a message, which is replicated, and waits for it.
func (s *Server) Follow(master *Server) {
	s.TB.Helper()
	s.must("REPLICAOF", "127.0.0.1", strconv.Itoa(master.port))
	err := poll(process.Timeout, func() error {
		f, err := replication(s)
		if err == nil && f["master_link_status"] != "up" {
			err = fmt.Errorf("%s follows %s, link %q", s.Addr, f["master_port"], f["master_link_status"])
		}
		return err
	})
	if err == nil {
		master.must("PUBLISH", "testkit", "")
		err = caughtUp(master, []*Server{s})
	}
	if err != nil {
		s.TB.Fatal(err)
	}
}

// Promote makes the server a master.
func (s *Server) Promote() {
	s.TB.Helper()
	s.must("REPLICAOF", "NO", "ONE")
}

func caughtUp(master *Server, replicas []*Server) error {
	if len(replicas) == 0 {
		return errors.New(master.Addr + " has no replica that runs")
	}
	want, err := offset(master, "master_repl_offset")
	if err != nil {
		return err
	}
	for _, replica := range replicas {
		err := poll(10*time.Second, func() error {
			got, err := offset(replica, "slave_repl_offset")
			if err == nil && got < want {
				err = fmt.Errorf("%s has offset %d, and its master had offset %d", replica.Addr, got, want)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func offset(node *Server, field string) (int64, error) {
	f, err := replication(node)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(f[field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has no %s", node.Addr, field)
	}
	return n, nil
}
