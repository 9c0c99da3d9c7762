package acceptance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const ctlSharesConfiguration = `version: 1
max_memory: 16MiB
rules: []
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
fair_share: {client: header:X-Client-Id, capacity: 3, cycle: 1h, reclaim: next_cycle, weights: {quiet: 1}}
`

// TestCtlShares checks the output of headgate ctl shares and ctl status. One client has used its
// share, another has sent nothing, and an anonymous request is in neither share.
func TestCtlShares(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, ctlSharesConfiguration, behind.URL)
	for n, want := range []int{200, 200, 429, 429} {
		if resp, _ := get(t, "http://"+i.Proxy+"/", "X-Client-Id", "loud"); resp.StatusCode != want {
			t.Errorf("request %d is answered with %d, want %d", n+1, resp.StatusCode, want)
		}
	}
	if resp, _ := get(t, "http://"+i.Proxy+"/"); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("an anonymous request is answered with %d", resp.StatusCode)
	}
	status, table, stderr := call(t, "ctl", "shares", "--admin", i.Admin)
	for _, want := range []string{
		`(?m)^cycle 1, capacity 3 per 1h0m0s, enforce; no previous cycle; loan, next_cycle$`,
		`(?m)^CLIENT +DEMAND +SIZE +BORROWED +LENT +SEEN +ADMITTED +REFUSED +LASTING$`,
		`(?m)^loud +0 +\d +0 +0 +4 +2 +2 +no\nquiet +0 +\d +0 +0 +0 +0 +0 +no\nTOTAL of 2 +0 +3 +0 +0 +4 +2 +2 +0$`,
	} {
		if status != 0 || !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("status %d, and the table lacks %s:\n%s%s", status, want, table, stderr)
		}
	}
	if _, table, _ = call(t, "ctl", "status", "--admin", i.Admin); !regexp.MustCompile(
		`(?m)^FAIR SHARE +CAPACITY +CYCLE +CLIENTS .*\nenforce +3 +1h0m0s +2 +0 of 0 +2 +3 +anonymous_client 1, over_share 2, within_limit 2$`,
	).MatchString(table) {
		t.Errorf("the status does not show fair share:\n%s", table)
	}
}

// watching is headgate ctl shares --watch --json of an instance with a configuration file.
type watching struct {
	t        *testing.T
	command  *exec.Cmd
	cycles   chan uint64 // of each document; closed at the end
	notified chan string // lines of standard error; closed at the end
}

func watchShares(t *testing.T, admin string) *watching {
	t.Helper()
	w := &watching{
		t: t, cycles: make(chan uint64, 1000), notified: make(chan string, 1000),
		command: exec.Command(binary, "ctl", "shares", "--watch", "--every", "20ms", "--json", "--admin", admin),
	}
	out, err := w.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	faults, err := w.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.command.Process.Kill() })
	go func() {
		defer close(w.cycles)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s struct {
				Cycle    uint64 `json:"cycle"`
				Capacity int64  `json:"capacity"`
			}
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil || s.Capacity != 3 {
				t.Errorf("%s: %v", lines.Text(), err)
			}
			w.cycles <- s.Cycle
		}
	}()
	go func() {
		defer close(w.notified)
		for lines := bufio.NewScanner(faults); lines.Scan(); {
			w.notified <- lines.Text()
		}
	}()
	return w
}

// awaits waits for a document.
func (w *watching) awaits() {
	w.t.Helper()
	select {
	case _, ok := <-w.cycles:
		if !ok {
			w.t.Fatal("headgate ctl shares --watch has ended")
		}
	case <-time.After(patience):
		w.t.Fatalf("headgate ctl shares --watch says nothing for %v", patience)
	}
}

// says waits for a line of standard error.
func (w *watching) says(text string) {
	w.t.Helper()
	for {
		select {
		case line, ok := <-w.notified:
			switch {
			case !ok:
				w.t.Fatalf("headgate ctl shares --watch ends without %q", text)
			case strings.Contains(line, text):
				return
			}
		case <-time.After(patience):
			w.t.Fatalf("headgate ctl shares --watch does not say %q", text)
		}
	}
}

// keptAddress gives a free address outside of the range that the system assigns, so that it
// stays free between two instances.
func keptAddress(t *testing.T) string {
	t.Helper()
	const from, to = 20_000, 30_000 // Linux assigns ports from 32768 on.
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", from+rand.IntN(to-from)))
		if err == nil {
			_ = ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatalf("a hundred ports from %d to %d are taken", from, to)
	return ""
}

// TestCtlSharesWatch: a watch continues after a restart of the instance, and Ctrl-C ends it with
// status 0.
func TestCtlSharesWatch(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	path := file(t, fmt.Sprintf(ctlSharesConfiguration, behind.URL)+fmt.Sprintf("\nadmin: {listen: %q, health: off}\n", keptAddress(t)))
	i := launch(t, path)
	w := watchShares(t, i.Admin)
	w.awaits()
	i.stop()
	w.says("retrying")
	launch(t, path)
	w.says("answers again")
	w.awaits()
	if err := w.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for range w.cycles { // reads until the end
	}
	for line := range w.notified {
		t.Errorf("after Ctrl-C it says %s", line)
	}
	if err := w.command.Wait(); err != nil || w.command.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("headgate ctl shares --watch ends with %v (%v), want status 0", w.command.ProcessState, err)
	}
}
