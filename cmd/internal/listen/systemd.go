package listen

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
)

// maxInherited bounds LISTEN_FDS, because go-systemd opens a file for each socket.
const maxInherited = 1024

// howToInherit is the advice in errors of a process that was started without sockets.
const howToInherit = "start it with a systemd socket unit (Sockets= in the service), or write host:port"

// Inherited has the sockets that the process was started with. The zero value takes them
// over when an address first names one. Inherited then removes the variables of
// sd_listen_fds(3), so that a child process does not use the sockets. A process has one Inherited. Sockets that no
// address names stay open as long as the Inherited is in use.
type Inherited struct {
	taken bool
	files []*os.File
}

// listen opens the socket with the given name. "" means the only socket.
func (i *Inherited) listen(name string) (net.Listener, error) {
	if !i.taken {
		if err := checkInherited(os.LookupEnv, os.Getpid()); err != nil {
			return nil, err
		}
		i.taken, i.files = true, activation.Files(true)
	}
	file, err := choose(i.files, name)
	if err != nil {
		return nil, err
	}
	ln, err := net.FileListener(file) // FileListener duplicates the descriptor with close-on-exec.
	_ = file.Close()
	if err != nil {
		return nil, fmt.Errorf("listen: the inherited file %s is not a listening socket: %w: "+
			"write ListenStream= in the socket unit, and Accept=no", file.Name(), err)
	}
	return ln, nil
}

// checkInherited returns an error if the environment has no sockets for the process.
func checkInherited(environment func(string) (string, bool), pid int) error {
	count, ok := environment("LISTEN_FDS")
	if !ok {
		return fmt.Errorf("listen: the process was started without a socket: LISTEN_FDS is not set: %s", howToInherit)
	}
	if n, err := strconv.Atoi(count); err != nil || n < 1 || n > maxInherited {
		return fmt.Errorf("listen: LISTEN_FDS is %.20q, not a number from 1 to %d: %s", count, maxInherited, howToInherit)
	}
	if owner, _ := environment("LISTEN_PID"); owner != strconv.Itoa(pid) {
		return fmt.Errorf("listen: the sockets are for process %.20q, but this is process %d: "+
			"start it directly, or with exec", owner, pid)
	}
	return nil
}

func choose(files []*os.File, name string) (*os.File, error) {
	if name == "" && len(files) == 1 {
		return files[0], nil
	}
	names := make([]string, len(files))
	for i, f := range files {
		if f.Name() == name {
			return f, nil
		}
		names[i] = "systemd:" + f.Name()
	}
	all := strings.Join(names, " or ")
	if name == "" {
		return nil, fmt.Errorf("listen: the process was started with %d sockets: choose one: %s", len(files), all)
	}
	return nil, fmt.Errorf("listen: no inherited socket is named %q: write %s, or FileDescriptorName=%s in the socket unit",
		name, all, name)
}
