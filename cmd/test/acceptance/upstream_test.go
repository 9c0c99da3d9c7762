package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// upstreamPart names the variable that makes the test binary run as an upstream.
const upstreamPart = "HEADGATE_TEST_UPSTREAM"

// upstreamApart starts an upstream in its own process, and gives its address. So its files do
// not count with those of the clients. The upstream supports HTTP/1 and h2c. variables are more
// environment variables.
func upstreamApart(t *testing.T, variables ...string) string {
	t.Helper()
	_, stdout := startApart(t, append(variables, upstreamPart+"=1")...)
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the upstream says no address: %v", err)
	}
	return strings.TrimSpace(address)
}

// startApart runs the test binary once more, with environment variables that say what it does. The process ends when life is closed,
// at the latest at the end of the test.
func startApart(t *testing.T, variables ...string) (life io.Closer, stdout io.Reader) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), variables...)
	command.Stderr = os.Stderr
	if life, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if stdout, err = command.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = life.Close()
		_ = command.Wait()
	})
	return life, stdout
}

// runUpstream serves until standard input is closed, which the end of the test process causes.
func runUpstream() int {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := &http.Server{Handler: page(), Protocols: &http.Protocols{}}
	if os.Getenv(burningUpstream) != "" {
		server.Handler = newBurner()
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	fmt.Println(listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = server.Close()
	return 0
}
