package redis

import (
	"fmt"
	"strings"
)

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
