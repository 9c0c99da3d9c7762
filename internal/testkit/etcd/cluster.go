package etcd

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/testkit/process"
)

// StartCluster runs a cluster of n members until the test ends. Kill of the others leaves a member without a leader.
func StartCluster(tb testing.TB, n int) []*Server {
	tb.Helper()
	return process.Retry(tb, "no cluster of etcd starts", func() ([]*Server, error) { return tryCluster(tb, n) })
}

func tryCluster(tb testing.TB, n int) ([]*Server, error) {
	tb.Helper()
	all, peers := make([]*Server, n), make([]string, n)
	members := make([]string, n)
	token := rand.Text()
	for i := range all {
		s, peer, err := newServer(tb, nil)
		if err != nil {
			return nil, err
		}
		s.members = n
		all[i], peers[i], members[i] = s, "http://"+peer, s.name+"=http://"+peer
	}
	errs := make([]error, n)
	var starting sync.WaitGroup
	for i, s := range all {
		s.Command = []string{
			"etcd", "--name", s.name, "--data-dir", s.dataDir(),
			"--listen-client-urls", "http://" + s.Addr, "--advertise-client-urls", "http://" + s.Addr,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-token", token,
			"--heartbeat-interval", "50", "--election-timeout", "500", "--strict-reconfig-check=false", // Members leave at once.
			"--logger", "zap", "--log-level", "warn", "--log-outputs", "stderr",
		}
		starting.Go(func() { errs[i] = s.Launch() })
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		for i, s := range all {
			if errs[i] == nil { // Launch has killed the others.
				s.Kill()
			}
		}
		return nil, err
	}
	return all, nil
}

// isMember reports whether the reply lists the members of this server's cluster.
func (s *Server) isMember(reply []byte) error {
	var list struct {
		Members []struct {
			Name string `json:"name"`
		} `json:"members"`
	}
	if err := json.Unmarshal(reply, &list); err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.Name == s.name && len(list.Members) == max(1, s.members) {
			return nil
		}
	}
	return fmt.Errorf("%s is another server: %s", s.Addr, reply)
}
