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

func TestCheckInherited(t *testing.T) {
	for _, c := range []struct {
		name  string
		env   map[string]string
		fails string
	}{
		{"for this process", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "1"}, ""},
		{"the maximum", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "1024"}, ""},
		{"none", nil, "LISTEN_FDS is not set"},
		{"for another process", map[string]string{"LISTEN_PID": "8", "LISTEN_FDS": "1"}, `for process "8", but this is process 7`},
		{"for no process", map[string]string{"LISTEN_FDS": "1"}, "with exec"},
		{"no number", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "x"}, "not a number from 1 to 1024"},
		{"zero", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "0"}, "not a number from 1 to 1024"},
		{"below zero", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "-1"}, "not a number from 1 to 1024"},
		{"more than the maximum", map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "99999999"}, "not a number from 1 to 1024"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := checkInherited(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }, 7)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
		})
	}
}

// files returns open files with these names, as go-systemd names inherited sockets.
func files(t *testing.T, names ...string) []*os.File {
	t.Helper()
	t.Chdir(t.TempDir())
	all := make([]*os.File, len(names))
	for i, name := range names {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		all[i] = f
	}
	return all
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name  string
		names []string
		which string
		want  int
		fails string
	}{
		{"the only one", []string{"admin"}, "", 0, ""},
		{"by name", []string{"admin", "web"}, "web", 1, ""},
		{"by its number", []string{"web", "LISTEN_FD_4"}, "LISTEN_FD_4", 1, ""},
		{"two with the same name: the first", []string{"admin", "web", "web"}, "web", 1, ""},
		{"several, and no name", []string{"admin", "web"}, "", 0, "2 sockets: choose one: systemd:admin or systemd:web"},
		{"an unknown name", []string{"LISTEN_FD_3"}, "web", 0, "write systemd:LISTEN_FD_3, or FileDescriptorName=web"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := files(t, c.names...)
			got, err := choose(all, c.which)
			if c.fails == "" && (err != nil || got != all[c.want]) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got %v, %v, want file %d, %q", got, err, c.want, c.fails)
			}
		})
	}
}

// FuzzCheckInherited checks that any environment gives at most maxInherited sockets, and
// only those for this process.
func FuzzCheckInherited(f *testing.F) {
	f.Add("7", "2")
	f.Add("7", "-1")
	f.Add("", "1e3")
	f.Fuzz(func(t *testing.T, pid, count string) {
		env := map[string]string{"LISTEN_PID": pid, "LISTEN_FDS": count}
		if checkInherited(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, 7) != nil {
			return
		}
		if n, err := strconv.Atoi(count); err != nil || pid != "7" || n < 1 || n > maxInherited {
			t.Errorf("%q sockets for process %q were taken over", count, pid)
		}
	})
}

// role runs a role of this test binary as a process with sockets, as systemd would. The
// shell replaces itself with the process, so that LISTEN_PID is the process's own id.
func role(t *testing.T, address string, socket *os.File, env ...string) *exec.Cmd {
	t.Helper()
	return partOf(t, address, "web", []*os.File{socket}, env...)
}

func partOf(t *testing.T, address, names string, sockets []*os.File, env ...string) *exec.Cmd {
	t.Helper()
	script := `LISTEN_PID=$$; export LISTEN_PID; exec "$0" -test.run='^$'`
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "HEADGATE_TEST_ADDRESS="+address,
		"LISTEN_FDS="+strconv.Itoa(len(sockets)), "LISTEN_FDNAMES="+names)...)
	cmd.ExtraFiles = sockets
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
		name, address, names string
		holders              []net.Listener
		want                 []string
	}{
		{"a port", "systemd", "web", []net.Listener{tcp}, []string{"served true"}},
		{"a port by name", "systemd:web", "web", []net.Listener{tcp}, []string{"served true"}},
		{"a unix socket", "systemd", "", []net.Listener{unix}, []string{"served false"}},
		{"two by name", "systemd:web systemd:admin", "admin:web", []net.Listener{unix, tcp}, []string{"served false", "served true"}},
		{"two, one with a name", "systemd:LISTEN_FD_4 systemd:web", "web", []net.Listener{tcp, unix}, []string{"served true", "served false"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sockets []*os.File
			for _, holder := range c.holders {
				socket, err := holder.(interface{ File() (*os.File, error) }).File()
				if err != nil {
					t.Fatal(err)
				}
				sockets = append(sockets, socket)
			}
			cmd := partOf(t, c.address, c.names, sockets, "HEADGATE_TEST_ROLE=inherit")
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for i, holder := range c.holders {
				sockets[i].Close()
				text, err := io.ReadAll(dial(t, holder.Addr()))
				if err != nil || string(text) != c.want[i] {
					t.Errorf("the process responded with %q (%v), want %q", text, err, c.want[i])
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the file of an inherited unix socket was removed: %v", err)
	}
}

// TestInheritedFile checks that an inherited file that does not listen gives an error.
func TestInheritedFile(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, err := role(t, "systemd", file, "HEADGATE_TEST_ROLE=inherit").Output()
	if err == nil || !strings.Contains(string(out), "ListenStream=") {
		t.Errorf("the process ended with %v and output %q", err, out)
	}
}
