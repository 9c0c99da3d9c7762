package openapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// patience is longer than any event that these tests wait for.
const patience = 30 * time.Second

// binary is the path of the headgate binary for all tests of this package.
var binary string

// TestMain builds headgate.
func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	folder, err := os.MkdirTemp("", "headgate-openapi-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "headgate")
	command := exec.Command("go", "build", "-o", binary, "./cmd/headgate")
	command.Dir = filepath.Join("..", "..", "..")
	if text, err := command.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "openapi: the binary does not build: %v\n%s", err, text)
		return 1
	}
	return m.Run()
}

// launch runs headgate server with a configuration, and gives the address of its HTTP listener. The test stops the server.
func launch(t *testing.T, configuration string) (address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	configuration += "\nadmin: {listen: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n"
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "server", "--config", path) // The cleanup ends it.
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	serving, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(io.TeeReader(stderr, &log)); lines.Scan(); {
			var line struct {
				Msg  string `json:"msg"`
				HTTP string `json:"http"`
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				serving <- line.HTTP
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		_ = command.Wait() // It was killed.
	})
	select {
	case address = <-serving:
		return address
	case <-ended:
		t.Fatalf("headgate server ended:\n%s", log.String())
	case <-time.After(patience):
		t.Fatalf("headgate server does not serve after %v", patience)
	}
	return ""
}

// token is a token of a caller.
type token struct{ text, digest string }

// newToken makes a token as an operator does. The digest is in the lines that the operator pastes.
func newToken(t *testing.T) token {
	t.Helper()
	var lines bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, "token", "caller")
	command.Stderr = &lines
	text, err := command.Output()
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(lines.String())
	if err != nil || digest == "" {
		t.Fatalf("headgate token: %v\n%s", err, lines.String())
	}
	return token{strings.TrimSpace(string(text)), digest}
}

// exchange is a request with its answer.
type exchange struct {
	method, target string
	header         http.Header
	body           string
	follows        bool // The request follows the document.

	status       int
	answerHeader http.Header
	answer       []byte
}

// String names the exchange in errors.
func (e *exchange) String() string {
	const most = 120
	return fmt.Sprintf("%s %s %.*s: %d %.*s", e.method, e.target, most, e.body, e.status, most, e.answer)
}

// send sends the request of e to a server, and keeps the answer.
func (e *exchange) send(t *testing.T, address string) {
	t.Helper()
	r := e.request(t)
	r.URL.Scheme, r.URL.Host = "http", address
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	defer resp.Body.Close()
	e.status, e.answerHeader = resp.StatusCode, resp.Header
	if e.answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%v: %v", e, err)
	}
}

// request makes the request of e. Each call gives another one.
func (e *exchange) request(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), e.method, e.target, strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = e.header.Clone()
	return r
}

// response makes the answer of e. Each call gives another one.
func (e *exchange) response() *http.Response {
	return &http.Response{StatusCode: e.status, Header: e.answerHeader.Clone(), Body: io.NopCloser(bytes.NewReader(e.answer))}
}
