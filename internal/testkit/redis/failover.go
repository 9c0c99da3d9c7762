package redis

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Addrs returns the addresses of the sentinels, for the configuration of clients.
func (s *Sentinel) Addrs() []string {
	addrs := make([]string, 0, len(s.Sentinels))
	for _, one := range s.Sentinels {
		addrs = append(addrs, one.Addr)
	}
	return addrs
}

// MasterAddr returns the master's address that most running sentinels name.
func (s *Sentinel) MasterAddr() string {
	s.tb.Helper()
	addr, err := s.agreed()
	if err != nil {
		s.tb.Fatal(err)
	}
	return addr
}

// Master returns the server at MasterAddr.
func (s *Sentinel) Master() *Server {
	s.tb.Helper()
	return s.at(s.MasterAddr())
}

func (s *Sentinel) at(addr string) *Server {
	s.tb.Helper()
	i := slices.IndexFunc(s.Nodes, func(node *Server) bool { return node.Addr == addr })
	if i < 0 {
		s.tb.Fatalf("the sentinels name %q, which is not one of the servers", addr)
	}
	return s.Nodes[i]
}

// KillMaster ends the master as kill -9 does, and returns it. Call WaitMaster with its Addr to
// wait for the next master. After its Restart, the old master is a replica.
func (s *Sentinel) KillMaster() *Server {
	s.tb.Helper()
	master := s.Master()
	master.Kill()
	return master
}

// WaitMaster waits for another master than not, and returns its address. Most running sentinels
// must name it, it must have the role of master, and all running replicas must follow it.
// WaitMaster fails the test after the timeout.
func (s *Sentinel) WaitMaster(not string, wait time.Duration) string {
	s.tb.Helper()
	var addr string
	err := poll(wait, func() error {
		var err error
		if addr, err = s.agreed(); err != nil {
			return err
		}
		if addr == not {
			return fmt.Errorf("the master is still %s", addr)
		}
		return s.leads(s.at(addr))
	})
	if err != nil {
		s.tb.Fatalf("no other master: %v%s", err, ends(slices.Concat(s.Sentinels, s.Nodes)...))
	}
	return addr
}

// leads returns the reason why a node is not the master of all other running nodes, or nil.
func (s *Sentinel) leads(node *Server) error {
	if !node.Running() {
		return fmt.Errorf("%s does not run", node.Addr)
	}
	f, err := replication(node)
	if err != nil {
		return err
	}
	if f["role"] != "master" {
		return fmt.Errorf("%s is still a %s", node.Addr, f["role"])
	}
	return s.inStep(node)
}

// agreed returns the master that more than half of the running sentinels name.
func (s *Sentinel) agreed() (string, error) {
	votes, running := map[string]int{}, 0
	for _, one := range s.Sentinels {
		if !one.Running() {
			continue
		}
		running++
		reply, err := one.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
		if err != nil {
			return "", err
		}
		if pair, ok := reply.([]any); ok && len(pair) == 2 {
			votes[fmt.Sprintf("%v:%v", pair[0], pair[1])]++
		}
	}
	for addr, n := range votes {
		if n > running/2 {
			return addr, nil
		}
	}
	return "", errors.New("the sentinels do not agree on a master")
}
