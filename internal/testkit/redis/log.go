package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// Log returns the output of all runs of the server.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// ends returns the last lines of each server's log.
func ends(servers ...*Server) string {
	const most = 2048
	var b strings.Builder
	for _, s := range servers {
		text := s.Log()
		if len(text) > most {
			_, text, _ = strings.Cut(text[len(text)-most:], "\n")
		}
		fmt.Fprintf(&b, "\nlog of %s:\n%s", s.Addr, text)
	}
	return b.String()
}
