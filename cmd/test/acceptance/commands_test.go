package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestExitStatuses(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	fine := file(t, fmt.Sprintf(twoConfiguration, behind.URL))
	faulty := file(t, strings.Replace(fmt.Sprintf(twoConfiguration, behind.URL), "2/1h", "2/1x", 1))
	alone := file(t, "version: 1\nrules: []\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := file(t, strings.Replace(fmt.Sprintf(twoConfiguration, behind.URL), "127.0.0.1:0", taken.Addr().String(), 1)+
		"admin: {listen: off, health: off}\n")
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"check", "--config", fine}, 0, "is fine"},
		{[]string{"check", "--config", faulty}, 2, ":7:18: rules[0].limits[0]"},
		{[]string{"proxy", "--config", faulty}, 2, ":7:18: rules[0].limits[0]"},
		{[]string{"check", "--config", fine + "x"}, 2, "no such file"},
		{[]string{"check", fine, "--parent", fine}, 2, "lease.servers: is missing, so this server has no parent"},
		{[]string{"proxy", "--config", alone}, 2, "write proxy: {upstream:"},
		{[]string{"proxy", "--config", busy}, 1, "proxy.listen"},
		{[]string{"version"}, 0, "headgate "},
		{[]string{"ctl", "status", "--admin", "127.0.0.1:1"}, 1, "nothing answers on 127.0.0.1:1"},
		{[]string{"demo", "--for", "soon"}, 2, "--for"},
		{[]string{"nonsense"}, 2, "headgate --help"},
	} {
		status, stdout, stderr := call(t, c.args...)
		if status != c.status || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("headgate %v: status %d, want %d and %q in\n%s%s", c.args, status, c.status, c.says, stdout, stderr)
		}
	}
}

func TestStatus(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, twoConfiguration, behind.URL)
	for range 3 {
		get(t, "http://"+i.Proxy+"/v1/product", "X-Client-Id", "a")
	}
	status, table, stderr := call(t, "ctl", "status", "--admin", i.Admin)
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{
		"serving for", i.Proxy + " -> " + behind.URL,
		`client +enforce +token_bucket +2/1h +2 +0 +1 +over_limit 1, within_limit 2`,
		`trial +shadow +token_bucket +1/1h +1 +0 +2 +`, `memory +\d+ +2 `,
	} {
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("the table lacks %s:\n%s", want, table)
		}
	}
	_, text, _ := call(t, "ctl", "status", "--admin", i.Admin, "--json")
	var parsed struct {
		State string `json:"state"`
		Rules []struct {
			Refused int `json:"refused"`
		} `json:"rules"`
	}
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	if parsed.State != "serving" || len(parsed.Rules) != 2 || parsed.Rules[0].Refused != 1 {
		t.Errorf("status %+v", parsed)
	}
	// Profiles are on the admin address, not on the health address.
	for page, want := range map[string]int{
		i.Admin + "/debug/pprof/": 200, i.Admin + "/metrics": 200, i.Admin + "/readyz": 200,
		i.Health + "/debug/pprof/": 404, i.Health + "/api/v1/status": 404, i.Health + "/metrics": 200,
	} {
		if resp, _ := get(t, "http://"+page); resp.StatusCode != want {
			t.Errorf("%s is %d, want %d", page, resp.StatusCode, want)
		}
	}
}

// TestDemo: the demo ends after its time and shows each client's share. Afterwards no address
// answers.
func TestDemo(t *testing.T) {
	began := time.Now()
	status, out, stderr := call(t, "demo", "--for", "7s")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if elapsed := time.Since(began); elapsed < 7*time.Second || elapsed > 15*time.Second {
		t.Errorf("it took %v, want about 7s", elapsed)
	}
	// The demo has four clients. Their sizes add up to the capacity, and a client gets its share on
	// demand.
	for _, want := range []string{
		`which can take 40 requests in 1s`, `curl -i -H`, `headgate ctl shares --watch --admin`,
		`(?m)^1 of 6: Four clients ask for 10`, `(?m)^2 of 6: A asks for 2`,
		`(?m)^cycle +\d+  A 10: \d+ of \d+  B 10: \d+ of \d+  C 10: \d+ of \d+  D 10: \d+ of \d+  \(size`,
		`(?m)^cycle +\d+  A 5: \d+ of \d+  B 15: \d+ of \d+  C 10: \d+ of \d+  D 10: \d+ of \d+  \(size`,
		`The service served \d+, at most \d+ in one cycle`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the demo does not show %s:\n%s", want, out)
		}
	}
	// On a machine that stalls, the requests come together, in a later cycle.
	for _, client := range regexp.MustCompile(`(?m)^([AD]) +(\d+) +\d+ +(\d+)$`).FindAllStringSubmatch(out, 2) {
		asked, _ := strconv.Atoi(client[2])
		if refused, _ := strconv.Atoi(client[3]); asked == 0 || refused > asked/5 {
			t.Errorf("%s asked for its share %d times, and %d were refused:\n%s", client[1], asked, refused, out)
		}
	}
	if tables := strings.Count(out, "IN ALL"); tables != 1 {
		t.Errorf("%d tables of all", tables)
	}
	for _, address := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(out, -1) {
		client := &http.Client{Timeout: time.Second}
		if resp, err := client.Get("http://" + address); err == nil {
			resp.Body.Close()
			t.Errorf("%s still answers after the demo", address)
		}
	}
}
