package traefik

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/gateway"
	"github.com/headgate/headgate/internal/testkit/process"
)

// startTimeout bounds the start of headgate server on a busy machine.
const startTimeout = 30 * time.Second

// traefik starts as docs/examples/gateways/README.md says, without its queries for newer versions.
func traefik() *gateway.Gateway {
	return &gateway.Gateway{
		Name: "Traefik", Files: []string{"traefik-dynamic.yaml"}, Program: traefikBinary,
		Words: []string{
			"--entrypoints.web.address=127.0.0.1:8000", "--providers.file.filename=traefik-dynamic.yaml",
			"--global.checknewversion=false", "--global.sendanonymoususage=false",
		},
		Unreachable: http.StatusInternalServerError,
	}
}

// TestTraefik tests the example as cmd/test/acceptance tests those of the other gateways.
func TestTraefik(t *testing.T) { traefik().Test(t, launch) }

// TestSpellings tests the example as cmd/test/acceptance tests those of the other gateways.
func TestSpellings(t *testing.T) { traefik().Spell(t, launch) }

// TestSubrequest compares the recorded subrequest of cmd/test/acceptance with that of Traefik.
func TestSubrequest(t *testing.T) {
	got := traefik().Subrequest(t)
	want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(gateway.TraefikAsks)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != want.Method || got.RequestURI != want.RequestURI || !reflect.DeepEqual(got.Header, want.Header) {
		t.Errorf("Traefik sends %s %s %v,\nand recorded is %s %s %v", got.Method, got.RequestURI, got.Header, want.Method, want.RequestURI, want.Header)
	}
}

// launch runs headgate server and waits until it serves.
func launch(t *testing.T, settings string) gateway.Server {
	t.Helper()
	folder := t.TempDir()
	path, log := filepath.Join(folder, "headgate.yaml"), filepath.Join(folder, "log")
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	running, err := process.Launch(log, headgateBinary, []string{"server", "--config", path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Kill)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline) && running.Running(); <-tick.C {
		if at := serving(log); at != "" {
			return gateway.Server{HTTP: at, Stop: func() {
				_ = running.Signal(syscall.SIGTERM)
				<-running.Ended()
			}}
		}
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("headgate server does not serve:\n%s", text)
	return gateway.Server{}
}

// serving returns the address of the HTTP listener in a log, "" before there is one.
func serving(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	for row := range bytes.Lines(text) {
		var line struct {
			Msg  string `json:"msg"`
			HTTP string `json:"http"`
		}
		if json.Unmarshal(row, &line) == nil && line.Msg == "serving" {
			return line.HTTP
		}
	}
	return ""
}
