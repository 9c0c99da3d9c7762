package etcd

import (
	"os"
)

// RestartEmpty is Restart for a server that has lost its disk. It becomes another cluster,
// whose revisions start from 1 again.
func (s *Server) RestartEmpty() {
	s.TB.Helper()
	s.Kill()
	if err := os.RemoveAll(s.dataDir()); err != nil {
		s.TB.Fatal(err)
	}
	s.Restart()
}
