package servers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// owns reports whether the server's own process listens on its port. A server of another program may have
// taken the port first, and answer in its place until ours ends.
func (s *Server) owns() bool {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return false
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return false
	}
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	folder := "/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/fd"
	open, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	own := map[string]bool{}
	for _, f := range open {
		if target, err := os.Readlink(filepath.Join(folder, f.Name())); err == nil {
			own[target] = true
		}
	}
	for line := range strings.Lines(string(text)) {
		if inode, listens := listener(line, number); listens && own["socket:["+inode+"]"] {
			return true
		}
	}
	return false
}

// listener gives the inode of a line of /proc/net/tcp, and reports whether it listens on a port.
func listener(line string, port int) (inode string, listens bool) {
	const local, state, node, listening = 1, 3, 9, "0A"
	fields := strings.Fields(line)
	if len(fields) <= node || fields[state] != listening {
		return "", false
	}
	return fields[node], strings.HasSuffix(fields[local], fmt.Sprintf(":%04X", port))
}
