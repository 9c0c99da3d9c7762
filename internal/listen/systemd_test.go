package listen

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func environment(all map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := all[name]; return v, ok }
}

func TestReadInherited(t *testing.T) {
	for _, c := range []struct {
		name  string
		env   map[string]string
		which string
		fd    int
		fails string
	}{
		{"the only one", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "1"}, "", 3, ""},
		{"by name", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "admin:web"}, "web", 4, ""},
		{"fewer names than sockets", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "web"}, "web", 3, ""},
		{"none", nil, "", 0, "LISTEN_FDS is not set"},
		{"for another process", map[string]string{"LISTEN_PID": "8", "LISTEN_FDS": "1"}, "", 0, `for the process "8", and this is 7`},
		{"for nobody", map[string]string{"LISTEN_FDS": "1"}, "", 0, "with exec"},
		{"no number", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "x"}, "", 0, "not a number of 1 to 1024"},
		{"zero", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "0"}, "", 0, "not a number of 1 to 1024"},
		{"more than there can be", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "99999999"}, "", 0, "not a number of 1 to 1024"},
		{
			"several, and no name",
			map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "admin:web"},
			"", 0, "systemd:admin or systemd:web",
		},
		{"an unknown name", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "1"}, "web", 0, "FileDescriptorName=web"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sockets, err := readInherited(environment(c.env), 7)
			var got inherited
			if err == nil {
				got, err = choose(sockets, c.which)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || got.fd != c.fd {
				t.Errorf("socket %d, %v, want %d, %q", got.fd, err, c.fd, c.fails)
			}
		})
	}
}

// The environment may say anything: the answer is an error or sockets in order.
func FuzzReadInherited(f *testing.F) {
	f.Add("7", "2", "a:b", "b")
	f.Add("7", "-1", "", "")
	f.Add("", "1e3", "::", "")
	f.Fuzz(func(t *testing.T, pid, count, names, which string) {
		sockets, err := readInherited(environment(map[string]string{"LISTEN_PID": pid, "LISTEN_FDS": count, "LISTEN_FDNAMES": names}), 7)
		if err != nil {
			return
		}
		if n, _ := strconv.Atoi(count); pid != "7" || n != len(sockets) || n > maxInherited {
			t.Errorf("%q sockets for %q gives %d", count, pid, len(sockets))
		}
		if s, err := choose(sockets, which); err == nil && (s.fd < 3 || s.fd >= 3+len(sockets) || which != "" && s.name != which) {
			t.Errorf("%q of %q is %+v", which, names, s)
		}
	})
}

// part runs a part of this test as a process with a socket, as systemd would:
// the shell becomes the process, so that LISTEN_PID is its own.
func part(t *testing.T, address string, socket *os.File, env ...string) *exec.Cmd {
	t.Helper()
	script := `LISTEN_PID=$$; export LISTEN_PID; exec "$0" -test.run='^$'`
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "HEADGATE_TEST_ADDRESS="+address, "LISTEN_FDS=1", "LISTEN_FDNAMES=web")...)
	cmd.ExtraFiles = []*os.File{socket}
	return cmd
}

func TestInheritedSocket(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "x.sock")
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	for _, c := range []struct {
		name, address, want string
		holder              net.Listener
	}{
		{"a port", "systemd", "served true", tcp},
		{"a port by name", "systemd:web", "served true", tcp},
		{"a unix socket", "systemd", "served false", unix},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket, err := c.holder.(interface{ File() (*os.File, error) }).File()
			if err != nil {
				t.Fatal(err)
			}
			cmd := part(t, c.address, socket, "HEADGATE_TEST_PART=inherit")
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			socket.Close()
			conn := dial(t, c.holder.Addr())
			text, err := io.ReadAll(conn)
			if err != nil || string(text) != c.want {
				t.Errorf("the process answers %q (%v), want %q", text, err, c.want)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("an inherited socket's file is its holder's, and it is gone: %v", err)
	}
}

// What is inherited may be no socket that listens.
func TestInheritedFile(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, err := part(t, "systemd", file, "HEADGATE_TEST_PART=inherit").Output()
	if err == nil || !strings.Contains(string(out), "ListenStream=") {
		t.Errorf("the process ends with %v and says %q", err, out)
	}
}
