package models

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the path of the headgate binary for all tests of this package.
var program string

// TestMain builds the binary.
func TestMain(m *testing.M) {
	os.Exit(build(m))
}

func build(m *testing.M) int {
	folder, err := os.MkdirTemp("", "headgate-models-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	program = filepath.Join(folder, "headgate")
	command := exec.Command("go", "build", "-o", program, "./cmd/headgate")
	command.Dir = filepath.Join("..", "..", "..")
	command.Env = append(os.Environ(), "GOWORK=", "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "models: the binary does not build: %v\n%s", err, text)
		return 1
	}
	return m.Run()
}

// patience is longer than anything that these tests wait for.
const patience = 20 * time.Second

// A proxy is a running headgate proxy.
type proxy struct {
	Base  string `json:"proxy"`
	Admin string `json:"admin"`
	log   bytes.Buffer
}

// start runs headgate proxy with rules in front of a service.
func start(t *testing.T, rules, upstream, plane string) *proxy {
	t.Helper()
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	text := "version: 1\nmax_memory: 128MiB\n" + rules +
		"\nproxy: {listen: \"127.0.0.1:0\", upstream: \"" + upstream + "\"}\nadmin: {listen: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "proxy", "--config", file)
	command.Env = append(os.Environ(), "HEADGATE_PROXY_DATA_PLANE="+plane)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p, serving, ended := &proxy{}, make(chan struct{}), make(chan struct{})
	go p.read(stderr, serving, ended)
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		<-ended
		_ = command.Wait()
	})
	select {
	case <-serving:
	case <-ended:
		t.Fatalf("headgate proxy has ended:\n%s", &p.log)
	case <-time.After(patience):
		t.Fatal("headgate proxy does not serve")
	}
	p.Base = "http://" + p.Base
	return p
}

// read finds the addresses in the log.
func (p *proxy) read(stderr io.Reader, serving, ended chan struct{}) {
	defer close(ended)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		var line struct {
			Msg string `json:"msg"`
		}
		p.log.WriteString(lines.Text() + "\n")
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" && json.Unmarshal(lines.Bytes(), p) == nil {
			close(serving)
		}
	}
}

// used gives the units that a model has used of the rule tokens.
func (p *proxy) used(t *testing.T, model string) int64 {
	t.Helper()
	body, err := json.Marshal(map[string]any{"rule": "tokens", "values": []string{model}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+p.Admin+"/api/v1/key/get", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var key struct {
		Limits []struct {
			Used int64 `json:"used"`
		} `json:"limits"`
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &key)
	}
	if err != nil || len(key.Limits) != 1 {
		t.Fatalf("%s: %v %s", model, err, text)
	}
	return key.Limits[0].Used
}

// comes polls until something is so, and reports false if it does not come within the patience of the tests.
func comes(so func() bool) bool {
	every, end := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer every.Stop()
	for !so() {
		select {
		case <-every.C:
		case <-end:
			return false
		}
	}
	return true
}

// settled waits until a model has used an amount: the end of an answer settles after the client has the last byte.
func (p *proxy) settled(t *testing.T, model string, want int64) {
	t.Helper()
	var got int64
	if comes(func() bool { got = p.used(t, model); return got == want }) {
		return
	}
	t.Errorf("%s: the proxy has counted %d, and the service has stated %d", model, got, want)
}

// counting has a rule whose keys are the models: each call has a model of its own.
const counting = `rules:
  - {name: tokens, key: [model], limits: ["1000000/30d"], algorithm: fixed_window, settle: auto}
`

// TestCounterIsTheUsage runs all SDKs through the proxy: for each call that states its usage, the counter has what the SDK reports.
func TestCounterIsTheUsage(t *testing.T) {
	t.Parallel()
	for plane, ways := range map[string][]string{"fast": allWays(), "standard": someWays()} {
		t.Run(plane, func(t *testing.T) {
			t.Parallel()
			_, server := Serve()
			defer server.Close()
			upstream := server.URL
			if plane == "standard" {
				upstream = strings.Replace(upstream, "http://", "h2c://", 1)
			}
			p := start(t, counting, upstream, plane)
			found := node(t, every(p.Base, ways))
			maps.Copy(found, runGo(t, p.Base, ways))
			for model, one := range found {
				complete(t, one.Name, one)
				if want := stated(one.Name, model); want >= 0 {
					p.settled(t, model, want)
				} else if p.used(t, model) == 0 {
					t.Errorf("%s: a stream without usage was free", model)
				}
			}
		})
	}
}
