package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// Log is all that the server has said, over all its runs.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// ends are the last lines that each of the servers has said.
func ends(servers ...*Server) string {
	const most = 2048
	var b strings.Builder
	for _, s := range servers {
		text := s.Log()
		if len(text) > most {
			_, text, _ = strings.Cut(text[len(text)-most:], "\n")
		}
		fmt.Fprintf(&b, "\n%s has said:\n%s", s.Addr, text)
	}
	return b.String()
}
