package redis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Sentinel is a master with replicas, and the sentinels that watch over it. Its
// methods fail the test when they cannot do what they say.
type Sentinel struct {
	// Name is what the sentinels call the master.
	Name string
	// Nodes are the first master and its replicas, in this order for good.
	Nodes []*Server
	// Sentinels are what clients ask for the master.
	Sentinels []*Server

	tb testing.TB
}

// StartSentinel runs one master, its replicas and its sentinels until the test
// ends. A master that does not answer for 0.7 s is replaced when most sentinels
// agree: some two seconds after its end, and some four later if they do not. When it returns, all know each other and are well.
func StartSentinel(tb testing.TB, replicas, sentinels int) *Sentinel {
	tb.Helper()
	if replicas < 1 || sentinels < 1 {
		tb.Fatalf("%d replicas and %d sentinels: a failover wants one of each", replicas, sentinels)
	}
	s := &Sentinel{Name: "river", tb: tb}
	master := Start(tb, "--repl-ping-replica-period", "1")
	s.Nodes = append(s.Nodes, master)
	for range replicas {
		s.Nodes = append(s.Nodes, Start(tb, "--repl-ping-replica-period", "1", "--replicaof", "127.0.0.1", strconv.Itoa(master.port)))
	}
	// A sentinel asks a master for its replicas when it meets it, and then each ten seconds.
	if err := poll(patience, func() error { return s.inStep(master) }); err != nil {
		tb.Fatalf("the replicas: %v", err)
	}
	for range sentinels {
		s.Sentinels = append(s.Sentinels, s.startOne(master, sentinels/2+1))
	}
	if err := poll(3*patience, func() error { return s.unwell(master) }); err != nil {
		tb.Fatalf("the sentinels are not ready: %v%s", err, ends(slices.Concat(s.Sentinels, s.Nodes)...))
	}
	return s
}

func (s *Sentinel) startOne(master *Server, quorum int) *Server {
	s.tb.Helper()
	return start(s.tb, access{prepare: hurry}, func(dir string, port int) []string {
		return []string{s.configFile(dir, port, master, quorum), "--sentinel"}
	})
}

// configFile is what a sentinel needs: it writes there what it learns.
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

// hurry shortens the rounds in which a sentinel looks and tells, from seconds. It
// would ping as seldom as it wants answers, otherwise, and hold a master for dead
// that it has not pinged yet. A round of pings is 0.3 s because news of a replica
// counts for five of them when its master is dead, and comes each second then: with
// less no replica is good enough. Redis 7.0 is the first that can be told.
func hurry(a access, addr string) error {
	_, err := a.ask(addr, patience, "SENTINEL", "DEBUG",
		"ping-period", "300", "info-period", "500", "publish-period", "200", "ask-period", "200")
	return err
}

// inStep says which replica does not follow the master yet.
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

// unwell says what a sentinel that runs does not know yet.
func (s *Sentinel) unwell(master *Server) error {
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

// described asks a sentinel for what it calls fields: a list of name and value by
// turns, or a list of such lists. It gives one map at least.
func described(one *Server, words ...string) ([]map[string]string, error) {
	reply, err := one.Do(append([]string{"SENTINEL"}, words...)...)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	if len(list) == 0 {
		return nil, errors.New("the sentinel " + one.Addr + " has nothing to tell")
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
