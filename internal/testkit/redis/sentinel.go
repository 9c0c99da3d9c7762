package redis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Sentinel is a master with replicas and sentinels. Its methods fail the test when they cannot
// do their work.
type Sentinel struct {
	// Name is the sentinels' name for the master.
	Name string
	// Nodes are the first master and its replicas. The order never changes.
	Nodes []*Server
	// Sentinels are the servers that clients query for the master's address.
	Sentinels []*Server

	tb testing.TB
}

// StartSentinel runs a master with replicas and sentinels until the test ends. When it returns,
// all servers know each other and are in sync.
//
// When the master does not answer for 0.7 s and most sentinels agree, a replica replaces it.
// That takes about two seconds, and about four more if the sentinels do not agree at once.
func StartSentinel(tb testing.TB, replicas, sentinels int) *Sentinel {
	tb.Helper()
	if replicas < 1 || sentinels < 1 {
		tb.Fatalf("%d replicas and %d sentinels: a failover needs at least one of each", replicas, sentinels)
	}
	s := &Sentinel{Name: "river", tb: tb}
	master := Start(tb, "--repl-ping-replica-period", "1")
	s.Nodes = append(s.Nodes, master)
	for range replicas {
		s.Nodes = append(s.Nodes, Start(tb, "--repl-ping-replica-period", "1", "--replicaof", "127.0.0.1", strconv.Itoa(master.port)))
	}
	// A sentinel queries the list of replicas when it meets a master, and then only every
	// ten seconds. The replicas must be in sync before that.
	if err := poll(process.Timeout, func() error { return s.inStep(master) }); err != nil {
		tb.Fatalf("the replicas are not in sync: %v", err)
	}
	for range sentinels {
		s.Sentinels = append(s.Sentinels, s.startOne(master, sentinels/2+1))
	}
	if err := poll(3*process.Timeout, func() error { return s.unready(master) }); err != nil {
		tb.Fatalf("the sentinels are not ready: %v%s", err, ends(slices.Concat(s.Sentinels, s.Nodes)...))
	}
	return s
}

func (s *Sentinel) startOne(master *Server, quorum int) *Server {
	s.tb.Helper()
	return start(s.tb, access{prepare: shortenPeriods}, func(dir string, port int) []string {
		return []string{s.configFile(dir, port, master, quorum), "--sentinel"}
	})
}

// configFile writes a sentinel's configuration file. The sentinel later updates this file.
func (s *Sentinel) configFile(dir string, port int, master *Server, quorum int) string {
	s.tb.Helper()
	text := fmt.Appendf(nil, "bind 127.0.0.1\ndir %q\nport %d\n", dir, port)
	text = fmt.Appendf(text, "sentinel monitor %s 127.0.0.1 %d %d\n", s.Name, master.port, quorum)
	for _, setting := range []string{"down-after-milliseconds %s 700", "failover-timeout %s 2000", "parallel-syncs %s 10"} {
		text = fmt.Appendf(text, "sentinel "+setting+"\n", s.Name)
	}
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.tb.Fatal(err)
	}
	return file
}

// shortenPeriods shortens the periods of a sentinel, which are seconds by default. Without it, a
// sentinel would ping only once in down-after-milliseconds, and would take a master for dead
// before its first ping.
//
// The ping period is 0.3 s. When a master is dead, its replicas report each second, and a
// report may be five ping periods old. With a shorter period, no replica qualifies. This
// needs Redis 7.0 or later.
func shortenPeriods(a access, addr string) error {
	_, err := a.call(addr, process.Timeout, "SENTINEL", "DEBUG",
		"ping-period", "300", "info-period", "500", "publish-period", "200", "ask-period", "200")
	return err
}

// inStep returns an error for a running replica that is not in sync with the master.
func (s *Sentinel) inStep(master *Server) error {
	for _, node := range s.Nodes {
		if node == master || !node.Running() {
			continue
		}
		f, err := replication(node)
		if err != nil {
			return err
		}
		if f["master_port"] != strconv.Itoa(master.port) || f["master_link_status"] != "up" {
			return fmt.Errorf("%s follows %q, link %q", node.Addr, f["master_port"], f["master_link_status"])
		}
	}
	return nil
}

// unready returns an error for a running sentinel that does not know the whole setup yet.
func (s *Sentinel) unready(master *Server) error {
	for _, one := range s.Sentinels {
		if !one.Running() {
			continue
		}
		about, err := described(one, "MASTER", s.Name)
		if err != nil {
			return err
		}
		m := about[0]
		if m["port"] != strconv.Itoa(master.port) || m["flags"] != "master" ||
			m["num-slaves"] != strconv.Itoa(len(s.Nodes)-1) || m["num-other-sentinels"] != strconv.Itoa(len(s.Sentinels)-1) {
			return fmt.Errorf("%s knows master %s (%s), %s replicas, %s other sentinels",
				one.Addr, m["port"], m["flags"], m["num-slaves"], m["num-other-sentinels"])
		}
		replicas, err := described(one, "REPLICAS", s.Name)
		if err != nil {
			return err
		}
		for _, r := range replicas {
			if r["flags"] != "slave" || r["master-link-status"] != "ok" {
				return fmt.Errorf("%s knows replica %s as %s, link %s", one.Addr, r["port"], r["flags"], r["master-link-status"])
			}
		}
	}
	return nil
}

// described parses a sentinel's reply: a list of names and values in turn, or a list of such
// lists. It returns at least one map.
func described(one *Server, words ...string) ([]map[string]string, error) {
	reply, err := one.Do(append([]string{"SENTINEL"}, words...)...)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	if len(list) == 0 {
		return nil, errors.New("the sentinel " + one.Addr + " returns no fields")
	}
	if _, nested := list[0].([]any); !nested {
		list = []any{list}
	}
	var all []map[string]string
	for _, entry := range list {
		words, _ := entry.([]any)
		m := map[string]string{}
		for pair := range slices.Chunk(words, 2) {
			name, _ := pair[0].(string)
			m[name], _ = pair[len(pair)-1].(string)
		}
		all = append(all, m)
	}
	return all, nil
}
