package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/process"
)

// language is a folder of examples/ with programs that ask headgate server.
type language struct {
	folder   string
	program  string // runs the programs
	stream   string // the program that asks over gRPC
	sessions int    // in the README
}

// languages lists the folders. Debian's modules belong to /usr/bin/python3.
func languages() []language {
	return []language{
		{"node", "node", "stream.js", 2},
		{"python", "/usr/bin/python3", "stream.py", 1},
	}
}

// longDeadline is the deadline of the programs, in milliseconds. No answer is late on a busy machine.
const longDeadline = "60000"

func (l language) path() string { return filepath.Join("..", "..", "..", "docs", "examples", l.folder) }

// settings gives the example's configuration, with other addresses.
func (l language) settings(t *testing.T, grpc string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.path(), "headgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("127.0.0.1:8081", grpc, "127.0.0.1:6380", "127.0.0.1:0").Replace(string(text)) + adminAnywhere
}

// TestLanguages runs the sessions in the READMEs, and compares their output.
func TestLanguages(t *testing.T) {
	t.Parallel()
	for _, l := range languages() {
		t.Run(l.folder, func(t *testing.T) {
			t.Parallel()
			// The server takes units back for one second. A machine that stands still for so long gets another try.
			var fault string
			for range 3 {
				if fault = l.runReadme(t); fault == "" {
					return
				}
				t.Log(fault)
			}
			t.Error(fault)
		})
	}
}

// runReadme runs the sessions of the README, each with a new server. It gives the first difference.
func (l language) runReadme(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(l.path(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	sessions := strings.Split(string(page), "```\n$ ")[1:]
	if len(sessions) != l.sessions {
		t.Fatalf("the README has %d sessions, want %d", len(sessions), l.sessions)
	}
	for _, session := range sessions {
		session, _, _ = strings.Cut(session, "```")
		line, want, _ := strings.Cut(session, "\n")
		if fault := l.runSession(t, line, want); fault != "" {
			return fault
		}
	}
	return ""
}

func (l language) runSession(t *testing.T, line, want string) string {
	t.Helper()
	i := launchServer(t, file(t, l.settings(t, "127.0.0.1:0")))
	defer i.stop()
	line = strings.NewReplacer(
		"node stream.js", "node stream.js "+i.GRPC+" "+longDeadline,
		"python3 stream.py", "/usr/bin/python3 stream.py "+i.GRPC+" "+longDeadline,
		"node throttle.js user123 4", "node throttle.js user123 4 "+i.RESP+" "+longDeadline,
	).Replace(line)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Dir = l.path()
	got, err := command.CombinedOutput()
	times := regexp.MustCompile(`(again in|wait) [\d.]+ s`)
	if err != nil || times.ReplaceAllString(string(got), "") != times.ReplaceAllString(want, "") {
		return fmt.Sprintf("%s: %v\ngot\n%s\nwant\n%s", line, err, got, want)
	}
	return ""
}

// conversation is a running program that reads messages and prints answers.
type conversation struct {
	t     *testing.T
	input io.WriteCloser
	lines chan string
}

// converse starts the program of a language.
func (l language) converse(t *testing.T, at string) *conversation {
	t.Helper()
	command := exec.CommandContext(t.Context(), l.program, l.stream, at, longDeadline)
	command.Dir = l.path()
	faults, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = faults
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("%s: %v: run make deps", l.program, err)
	}
	c := &conversation{t: t, input: input, lines: make(chan string, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(c.lines)
		for s := bufio.NewScanner(output); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = input.Close()
		<-ended
		_ = command.Wait()
		_ = faults.Close()
		if text, _ := os.ReadFile(faults.Name()); len(text) > 0 {
			t.Errorf("%s prints errors:\n%s", l.stream, text)
		}
	})
	return c
}

func (c *conversation) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.input, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conversation) next() string {
	c.t.Helper()
	select {
	case line, open := <-c.lines:
		if !open {
			c.t.Fatal("the program has ended")
		}
		return line
	case <-time.After(4 * patience):
		c.t.Fatalf("the program prints nothing for %v", 4*patience)
	}
	return ""
}

// expect reads lines.
func (c *conversation) expect(want ...string) {
	c.t.Helper()
	for _, w := range want {
		if got := c.next(); got != w {
			c.t.Fatalf("the program prints %q, want %q", got, w)
		}
	}
}

const drains = "the server drains: the next message opens another stream"

// TestLanguageRestarts tells the life of the programs: a late answer, a return, a restart that drains their
// stream, and a server that is unreachable for a time.
func TestLanguageRestarts(t *testing.T) {
	t.Parallel()
	for _, l := range languages() {
		t.Run(l.folder, func(t *testing.T) {
			t.Parallel()
			l.restart(t)
		})
	}
}

func (l language) restart(t *testing.T) {
	t.Helper()
	at := process.FreeAddress(t)
	socket := openSocket(t, at)
	path := file(t, strings.Replace(l.settings(t, "systemd"), "rules:\n",
		"rules:\n  - {name: once, match: {path: /once/*}, key: [path], limits: [1/1d]}\n", 1))
	first := inheritServer(t, path, socket)
	c := l.converse(t, at)
	c.say("/search /search /search")
	c.expect("/search: allow, 2 of 3 left", "/search: allow, 1 of 3 left", "/search: allow, 0 of 3 left")
	c.comesBack("abort", func(url string) {
		c.say("abort " + url)
		c.expect(url+": allow, 0 of 1 left", "gave back 1")
	})
	c.comesBack("late", func(url string) {
		_ = first.command.Process.Signal(process.Pause)
		process.AwaitStop(first.command.Process.Pid)
		c.say("within 20 " + url)
		c.expect(url + ": deny, fallback (DEADLINE_EXCEEDED)")
		_ = first.command.Process.Signal(process.Resume)
		c.expect("gave back a late answer to 1")
	})

	second := inheritServer(t, path, socket)
	if status := first.stop(); status != 0 {
		t.Errorf("the first server ends with %d\n%s", status, first.text())
	}
	c.expect(drains)
	c.say("/search /free") // The second server has its own counts in memory.
	c.expect("/search: allow, 2 of 3 left", "/free: allow, no_rule")

	_ = socket.Close()
	if status := second.stop(); status != 0 {
		t.Errorf("the second server ends with %d\n%s", status, second.text())
	}
	c.expect(drains)
	c.say("/search /free")
	c.expect("/search: deny, fallback (UNAVAILABLE)", "/free: deny, fallback (UNAVAILABLE)")
	inheritServer(t, path, openSocket(t, at))
	eventually(t, "decisions of the third server", func() bool {
		c.say("/search")
		return c.next() == "/search: allow, 2 of 3 left"
	})
	_ = c.input.Close()
	if line, open := <-c.lines; open {
		t.Errorf("at the end the program prints %q", line)
	}
}

// comesBack expects that a unit comes back. The server takes units back for one second: a machine that stands
// still for so long gets another try.
func (c *conversation) comesBack(name string, take func(url string)) {
	c.t.Helper()
	for n := range 5 {
		url := fmt.Sprintf("/once/%s%d", name, n)
		take(url)
		c.say(url)
		if c.next() == url+": allow, 0 of 1 left" {
			return
		}
	}
	c.t.Errorf("%s: nothing comes back", name)
}

// openSocket listens at an address, and gives the socket to pass to servers.
func openSocket(t *testing.T, at string) *os.File {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return socket
}

// TestPythonStubs compares the stubs that are committed with the .proto file.
func TestPythonStubs(t *testing.T) {
	t.Parallel()
	const script = "import sys; from headgate.v1 import decisions_pb2, decisions_pb2_grpc; sys.stdout.buffer.write(decisions_pb2.DESCRIPTOR.serialized_pb)"
	command := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", script)
	command.Dir = filepath.Join("..", "..", "..", "docs", "examples", "python")
	var faults strings.Builder
	command.Stderr = &faults
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, faults.String())
	}
	got := new(descriptorpb.FileDescriptorProto)
	if err := proto.Unmarshal(out, got); err != nil {
		t.Fatal(err)
	}
	want := protodesc.ToFileDescriptorProto(headgatev1.File_headgate_v1_decisions_proto)
	dropJSONNames(want.GetMessageType())
	if !proto.Equal(got, want) {
		t.Errorf("docs/examples/python has the stubs of another file: run make proto\ngot  %v\nwant %v", got, want)
	}
}

// dropJSONNames drops names that Python's stubs leave out.
func dropJSONNames(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		for _, f := range m.GetField() {
			f.JsonName = nil
		}
		dropJSONNames(m.GetNestedType())
	}
}

// TestLanguageOrder sends many messages on one stream without waiting. Each caller gets its own answers.
func TestLanguageOrder(t *testing.T) {
	t.Parallel()
	settings := "version: 1\nserver: {grpc: '127.0.0.1:0', http: 'off'}\nrules: [{name: a, match: {path: /*}, key: [path], limits: [1/1d]}]\n"
	for _, words := range [][]string{{"node", "order.js"}, {"/usr/bin/python3", "order.py"}} {
		t.Run(words[1], func(t *testing.T) {
			t.Parallel()
			i := launchServer(t, file(t, settings+adminAnywhere))
			out, err := exec.CommandContext(t.Context(), words[0], filepath.Join("testdata", words[1]), i.GRPC).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
