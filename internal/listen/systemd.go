package listen

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

const (
	// firstInherited is the number of the first socket, after the three standard files.
	firstInherited = 3
	// maxInherited bounds what the environment may claim.
	maxInherited = 1024
)

// inherited is a socket that the process was started with.
type inherited struct {
	fd   int
	name string // as in FileDescriptorName of a socket unit; "" without one
}

// howToInherit ends the errors of a process that was started without sockets.
const howToInherit = "start it by a systemd socket unit (Sockets= in the service), or write host:port"

// openInherited takes over the socket of a name; with "", the only one there is.
func openInherited(name string, environment func(string) (string, bool)) (net.Listener, error) {
	sockets, err := readInherited(environment, os.Getpid())
	if err != nil {
		return nil, err
	}
	socket, err := choose(sockets, name)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(socket.fd), "systemd:"+socket.name)
	if file == nil {
		return nil, fmt.Errorf("listen: the inherited socket %d is no file: %s", socket.fd, howToInherit)
	}
	ln, err := net.FileListener(file) // It duplicates the descriptor, close-on-exec.
	_ = file.Close()
	if err != nil {
		return nil, fmt.Errorf("listen: the inherited file %d listens for nothing: %w: "+
			"write ListenStream= in the socket unit, and Accept=no", socket.fd, err)
	}
	return ln, nil
}

// readInherited reads what sd_listen_fds(3) describes: LISTEN_FDS sockets, from
// number 3, for the process LISTEN_PID, with names in LISTEN_FDNAMES.
func readInherited(environment func(string) (string, bool), pid int) ([]inherited, error) {
	count, ok := environment("LISTEN_FDS")
	if !ok {
		return nil, fmt.Errorf("listen: the process was started without a socket: LISTEN_FDS is not set: %s", howToInherit)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxInherited {
		return nil, fmt.Errorf("listen: LISTEN_FDS is %.20q, not a number of 1 to %d: %s", count, maxInherited, howToInherit)
	}
	if whose, _ := environment("LISTEN_PID"); whose != strconv.Itoa(pid) {
		return nil, fmt.Errorf("listen: the sockets are for the process %.20q, and this is %d: "+
			"start it without a program in between, or with exec", whose, pid)
	}
	var names []string
	if all, ok := environment("LISTEN_FDNAMES"); ok {
		names = strings.Split(all, ":")
	}
	sockets := make([]inherited, n)
	for i := range sockets {
		sockets[i].fd = firstInherited + i
		if i < len(names) {
			sockets[i].name = names[i]
		}
	}
	return sockets, nil
}

func choose(sockets []inherited, name string) (inherited, error) {
	if name == "" {
		if len(sockets) > 1 {
			return inherited{}, fmt.Errorf("listen: the process was started with %d sockets: say which: %s", len(sockets), namesOf(sockets))
		}
		return sockets[0], nil
	}
	for _, s := range sockets {
		if s.name == name {
			return s, nil
		}
	}
	return inherited{}, fmt.Errorf("listen: no inherited socket is named %q: write %s, or FileDescriptorName=%s in the socket unit",
		name, namesOf(sockets), name)
}

// namesOf lists the names as a configuration would write them.
func namesOf(sockets []inherited) string {
	var b strings.Builder
	for i, s := range sockets {
		if i > 0 {
			b.WriteString(" or ")
		}
		if s.name == "" {
			fmt.Fprintf(&b, "FileDescriptorName= for the socket %d", s.fd)
		} else {
			b.WriteString("systemd:" + s.name)
		}
	}
	return b.String()
}
