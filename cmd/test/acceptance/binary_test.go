package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the path of the headgate binary for all tests of this package.
var binary string

// TestMain runs the tests or, in a process that a test has started, the requested part.
func TestMain(m *testing.M) {
	if os.Getenv(upstreamPart) != "" {
		os.Exit(runUpstream())
	}
	if text := os.Getenv(spendersPart); text != "" {
		os.Exit(runSpenders(text))
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "headgate-acceptance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "headgate")
	build := exec.Command("make", "build", "OUT="+binary) // With the flags of what users run.
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "acceptance: the binary does not build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// patience is longer than any event that these tests wait for.
const patience = 15 * time.Second

// instance is a running headgate proxy.
type instance struct {
	t       *testing.T
	path    string // of the configuration
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended and its log was read
	status  error

	Proxy  string `json:"proxy"`
	Admin  string `json:"admin"`
	Health string `json:"health"`
	GRPC   string `json:"grpc"` // of headgate server
	HTTP   string `json:"http"` // of headgate server
	RESP   string `json:"resp"` // of headgate server

	mu  sync.Mutex
	log []logLine
}

// logLine has the fields of a log line that tests read.
type logLine struct {
	Msg        string `json:"msg"`
	Level      string `json:"level"`
	Rule       string `json:"rule"`
	Key        string `json:"key"`
	Verdict    string `json:"verdict"`
	Reason     string `json:"reason"`
	RetryAfter string `json:"retry_after"`
	At         int64  `json:"at"`
	Suppressed int    `json:"suppressed"`
	Instance   string `json:"instance"`
	Decision   string `json:"decision"`
	RequestID  string `json:"request_id"`
	Method     string `json:"method"`
	Host       string `json:"host"`
	Path       string `json:"path"`

	// Of headgate server.
	Domain      string `json:"domain"`
	Descriptors string `json:"descriptors"`
	Hits        int64  `json:"hits"`
	Code        string `json:"code"`

	text string
}

// adminAnywhere is the end of a configuration, with admin addresses on free ports.
const adminAnywhere = "\nadmin: {listen: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n"

// start runs headgate proxy and waits until it serves. The configuration has %s in place of the
// upstream, and addresses with free ports.
func start(t *testing.T, configuration, upstream string) *instance {
	t.Helper()
	return launch(t, file(t, fmt.Sprintf(configuration, upstream)+adminAnywhere))
}

// launch is start for a file, with additional environment variables.
func launch(t *testing.T, path string, variables ...string) *instance {
	t.Helper()
	command := exec.Command(binary, "proxy", "--config", path)
	command.Env = append(os.Environ(), variables...)
	return serve(t, path, command)
}

// serve runs a command that starts headgate proxy, and waits until the proxy serves.
func serve(t *testing.T, path string, command *exec.Cmd) *instance {
	t.Helper()
	chooseDataPlane(path, command)
	i := &instance{t: t, path: path, command: command, ended: make(chan struct{})}
	stderr, err := i.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := i.command.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan struct{})
	go i.read(stderr, serving)
	t.Cleanup(func() { i.stop() })
	select {
	case <-serving:
	case <-i.ended:
		t.Fatalf("headgate proxy ended: %v\n%s", i.status, i.text())
	case <-time.After(patience):
		t.Fatalf("headgate proxy does not serve after %v\n%s", patience, i.text())
	}
	return i
}

// dataPlaneVariable sets the data plane of a proxy.
const dataPlaneVariable = "HEADGATE_PROXY_DATA_PLANE="

// chooseDataPlane lets a proxy serve with HEADGATE_TEST_DATA_PLANE in place of the default, unless its file or its environment chooses.
func chooseDataPlane(path string, command *exec.Cmd) {
	plane := os.Getenv("HEADGATE_TEST_DATA_PLANE")
	text, _ := os.ReadFile(path) // Some commands have no file.
	chosen := bytes.Contains(text, []byte("data_plane")) ||
		slices.ContainsFunc(command.Env, func(v string) bool { return strings.HasPrefix(v, dataPlaneVariable) })
	if plane != "" && !chosen && bytes.Contains(text, []byte("upstream:")) {
		command.Env = append(command.Environ(), dataPlaneVariable+plane)
	}
}

// file writes a configuration to a private folder.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read collects the log, and finds the addresses in its first line.
func (i *instance) read(stderr io.Reader, serving chan struct{}) {
	defer close(i.ended)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := logLine{}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "decision" {
			line.text = lines.Text()
		}
		i.mu.Lock()
		i.log = append(i.log, line)
		i.mu.Unlock()
		if line.Msg == "serving" {
			if err := json.Unmarshal(lines.Bytes(), i); err != nil {
				i.t.Error(err)
			}
			close(serving)
		}
	}
	i.status = i.command.Wait()
}

func (i *instance) lines() []logLine {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log
}

// text is the log without the decisions.
func (i *instance) text() string {
	var b strings.Builder
	for _, line := range i.lines() {
		if line.text != "" {
			b.WriteString(line.text + "\n")
		}
	}
	return b.String()
}

// stop sends SIGTERM, waits for the process, and gives the exit status.
func (i *instance) stop() int {
	_ = i.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-i.ended:
	case <-time.After(patience):
		_ = i.command.Process.Kill()
		<-i.ended
		i.t.Errorf("headgate proxy did not end after SIGTERM\n%s", i.text())
	}
	return exitStatus(i.status)
}

func exitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// call runs a headgate command and waits for its end.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, faults bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Stdout, command.Stderr = &out, &faults
	return exitStatus(command.Run()), out.String(), faults.String()
}

// tool finds an installed program, or fails with the package to install.
func tool(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: install Debian's package %s, or run make deps", name, debian)
	}
	return path
}

// reply is an answer with its body.
type reply struct {
	StatusCode      int
	Header, Trailer http.Header
}

// get sends one request on a new connection.
func get(t *testing.T, url string, headers ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, resp.Trailer}, string(body)
}
