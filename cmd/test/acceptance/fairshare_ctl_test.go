package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFairShareAtTheEdges reads the shares of capacities that cannot be divided evenly from ctl
// shares.
func TestFairShareAtTheEdges(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	for _, c := range []struct {
		name     string
		capacity int64
		clients  string
		sizes    []int64
	}{
		{"nothing to share", 0, "A", []int64{0}},
		{"one client", 40, "A", []int64{40}},
		{"more clients than units", 3, "EDCBA", []int64{1, 1, 1, 0, 0}},
		{"40 among three", 40, "CBA", []int64{14, 13, 13}},
	} {
		i := start(t, fmt.Sprintf(fairShareConfiguration, fmt.Sprintf("capacity: %d, cycle: 200ms, forget_after: 1000", c.capacity)), behind.URL)
		for _, client := range c.clients {
			resp, _ := get(t, "http://"+i.Proxy, "X-Client-Id", string(client))
			if c.capacity == 0 && (resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "") {
				t.Errorf("%s: %d, Retry-After %q, want 429 and none", c.name, resp.StatusCode, resp.Header.Get("Retry-After"))
			}
		}
		for range 2 { // in the cycle with the requests or a later one, and after its end
			var got shareTable
			eventually(t, c.name, func() bool {
				got = ctlShares(t, i)
				return slices.Equal(got.sizes(), c.sizes)
			})
			nextCycle(t, i)
		}
		i.stop()
	}
}

// TestOneClientHasAllOfTheCapacity: a single client gets exactly the whole capacity.
func TestOneClientHasAllOfTheCapacity(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(fairShareConfiguration, "capacity: 40, cycle: 1s"), behind.URL)
	for range retellings {
		cycle := nextCycle(t, i).Cycle
		passed := burst(t, i, map[string]int64{"A": 50})
		got := ctlShares(t, i)
		if got.Cycle != cycle || got.row("A").Seen != 50 {
			continue // The machine was too busy.
		}
		if passed["A"] != 40 || got.Admitted != 40 || got.row("A").Refused != 10 {
			t.Errorf("%d of 50 passed, want 40: %+v", passed["A"], got)
		}
		return
	}
	t.Fatalf("the machine has sent 50 requests within a second in none of %d tries", retellings)
}

// TestSharesPage checks the fields of /api/v1/shares and their order against the documents.
func TestSharesPage(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(fairShareConfiguration, inOneCycle), behind.URL)
	farFromItsEnd(t, i)
	burst(t, i, map[string]int64{"A": 3})
	resp, body := get(t, "http://"+i.Admin+"/api/v1/shares")
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(body)); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	want := regexp.MustCompile(`^{"cycle":\d+,"capacity":4,"clients":\[` +
		`{"client":"A","demand":0,"size":2,"borrowed":0,"lent":0,"seen":3,"admitted":2,"refused":1[,}].*` +
		`{"client":"B","demand":0,"size":2,"borrowed":0,"lent":0,"seen":0,"admitted":0,"refused":0[,}]`)
	if kind := resp.Header.Get("Content-Type"); !want.Match(line.Bytes()) || !strings.HasPrefix(kind, "application/json") {
		t.Errorf("%s: %s\nwant %s", kind, line.Bytes(), want)
	}
	if _, text, _ := call(t, "ctl", "shares", "--json", "--admin", i.Admin); text != body {
		t.Errorf("ctl shares --json gives\n%s\nwant what /api/v1/shares gives\n%s", text, body)
	}
	if resp, _ := get(t, "http://"+i.Health+"/api/v1/shares"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the health address tells of shares: %d", resp.StatusCode)
	}
}

// TestNoShares: an instance without fair share names the missing setting.
func TestNoShares(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, twoConfiguration, behind.URL)
	status, _, faults := call(t, "ctl", "shares", "--admin", i.Admin)
	if status != 1 || !strings.Contains(faults, "fair_share: {client:") {
		t.Errorf("status %d, want 1 and what to write: %s", status, faults)
	}
}

// TestSharesAreWatched: headgate ctl shares --watch runs until Ctrl-C, and then ends with status
// 0.
func TestSharesAreWatched(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(fairShareConfiguration, inOneCycle), behind.URL)
	for _, c := range []struct {
		args  []string
		begin string // of the first line of each output
	}{
		{nil, "CLIENT "},
		{[]string{"--json"}, `{"cycle":`},
	} {
		watch := exec.Command(binary, append([]string{"ctl", "shares", "--watch", "--every", "50ms", "--admin", i.Admin}, c.args...)...)
		var faults bytes.Buffer
		watch.Stderr = &faults
		out, err := watch.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(patience, func() { _ = watch.Process.Kill() })
		shown := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), c.begin) {
				shown++
			}
			if shown == 3 {
				_ = watch.Process.Signal(syscall.SIGINT)
				shown++
			}
		}
		err = watch.Wait()
		if !late.Stop() || err != nil || shown < 4 || faults.Len() > 0 {
			t.Errorf("%v: shown %d times, ended with %v: %s", c.args, shown, err, faults.String())
		}
	}
}
