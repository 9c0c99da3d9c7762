package acceptance

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const openConfiguration = `version: 1
max_memory: 16MiB
shutdown_timeout: 5s
rules:
  - {name: all, key: [ip], limits: ["1000000/s"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestDrain: after SIGTERM, the request in flight ends, /readyz reports draining, new
// connections are refused, and the exit status is 0.
func TestDrain(t *testing.T) {
	reached, finish := make(chan struct{}), make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-finish
		_, _ = io.WriteString(w, "late")
	}))
	defer behind.Close()
	i := start(t, openConfiguration, behind.URL)
	if resp, body := get(t, "http://"+i.Health+"/readyz"); resp.StatusCode != http.StatusOK || body != "ready\n" {
		t.Errorf("/readyz is %d %q before the end", resp.StatusCode, body)
	}
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + i.Proxy + "/")
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-reached
	if err := i.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "/readyz to say that it drains", func() bool {
		resp, body := get(t, "http://"+i.Health+"/readyz")
		return resp.StatusCode == http.StatusServiceUnavailable && body == "draining\n"
	})
	if resp, _ := get(t, "http://"+i.Health+"/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz is %d while draining, want 200", resp.StatusCode)
	}
	eventually(t, "the listener to close", func() bool {
		conn, err := net.Dial("tcp", i.Proxy)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(finish)
	if got := <-answered; got != "late" {
		t.Errorf("the request under way is answered with %q", got)
	}
	<-i.ended
	if got := exitStatus(i.status); got != 0 {
		t.Errorf("exit status %d, want 0\n%s", got, i.text())
	}
}

// TestDrainEnds: a request that takes longer than shutdown_timeout is aborted, and the exit
// status shows that.
func TestDrainEnds(t *testing.T) {
	reached := make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	}))
	defer behind.Close()
	i := start(t, strings.Replace(openConfiguration, "5s", "200ms", 1), behind.URL)
	go func() {
		if resp, err := http.Get("http://" + i.Proxy + "/"); err == nil {
			resp.Body.Close()
		}
	}()
	<-reached
	if status := i.stop(); status != 1 {
		t.Errorf("exit status %d, want 1\n%s", status, i.text())
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// peak gives the largest resident memory of a process so far, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	return residentMemory(t, pid, "VmHWM:")
}

// residentMemory gives one number of /proc/PID/status, in bytes.
func residentMemory(t *testing.T, pid int, name string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("the system does not tell %s", name)
	return 0
}
