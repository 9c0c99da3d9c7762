package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/testkit/etcd"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// administeredService is a configuration of headgate server: the source has the customers, and Redis the counters.
const administeredService = `version: 1
max_memory: 16MiB
source: %s
store: %q
store_timeout: 10s
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls}
default_plan: free
plans:
  free: {quotas: {api_calls: [{limit: 3/year}]}}
  paid: {after: meter, quotas: {api_calls: [{limit: 5/year, hard: 300}]}}
server:
  grpc: "127.0.0.1:0"
  http: "127.0.0.1:0"
  callers:
    - {name: alice, tokens: [%q], scopes: [administer]}
    - {name: reader, tokens: [%q], scopes: [decide, send_limits, read]}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0", auth: token}
`

// office is two instances that an operator administers.
type office struct {
	t             *testing.T
	first, second *instance
	alice, reader string // files of tokens
}

func openOffice(t *testing.T, source string) *office {
	t.Helper()
	o := &office{t: t}
	var digests [2]string
	o.alice, digests[0] = tokenOf(t, "alice", "administer")
	o.reader, digests[1] = tokenOf(t, "reader", "decide,send_limits,read")
	path := file(t, fmt.Sprintf(administeredService, source, "redis://"+testserver.Start(t).Addr, digests[0], digests[1]))
	o.first, o.second = launchServer(t, path), launchServer(t, path)
	return o
}

// tokenOf makes a token with headgate token. It gives the file of the token, and its digest.
func tokenOf(t *testing.T, name, scopes string) (path, digest string) {
	t.Helper()
	status, token, lines := call(t, "token", name, "--scope", scopes)
	path = filepath.Join(t.TempDir(), name+".token")
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil || status != 0 {
		t.Fatal(status, err, lines)
	}
	return path, regexp.MustCompile("sha256:[0-9a-f]{64}").FindString(lines)
}

// ctl runs headgate ctl with the token of alice.
func (o *office) ctl(at *instance, args ...string) (status int, stdout, stderr string) {
	o.t.Helper()
	return call(o.t, append([]string{"ctl", "--admin", at.Admin, "--token-file", o.alice}, args...)...)
}

// must is ctl for a command that succeeds.
func (o *office) must(at *instance, args ...string) string {
	o.t.Helper()
	status, stdout, stderr := o.ctl(at, args...)
	if status != 0 {
		o.t.Fatalf("ctl %v: status %d\n%s%s\n%s", args, status, stdout, stderr, at.text())
	}
	return stdout
}

// decide sends requests of a customer, and counts those that pass and their metered units.
func (o *office) decide(at *instance, customer string, n int) (passed, metered int) {
	o.t.Helper()
	for range n {
		body := fmt.Sprintf(`{"path": "/", "headers": {"X-Customer": %q}}`, customer)
		resp, err := http.Post("http://"+at.HTTP+"/v1/decide", "application/json", strings.NewReader(body))
		if err != nil {
			o.t.Fatal(err)
		}
		var answer struct {
			Verdict string `json:"verdict"`
			Metered int    `json:"metered"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			o.t.Fatal(err)
		}
		resp.Body.Close()
		if answer.Verdict == "allow" {
			passed++
		}
		metered += answer.Metered
	}
	return passed, metered
}

// used gives what a customer has used, as an instance sees it.
func (o *office) used(at *instance, customer string) int64 {
	o.t.Helper()
	var u admin.Usage
	if err := json.Unmarshal([]byte(o.must(at, "--json", "quota", "usage", customer)), &u); err != nil {
		o.t.Fatal(err)
	}
	return u.Customers[0].Limits[0].Used
}

// TestAdministration: customers change in the middle of a window, in a fleet of two instances.
func TestAdministration(t *testing.T) { //nolint:tparallel // because the subtests are a story of one fleet
	t.Parallel()
	o := openOffice(t, fmt.Sprintf("{etcd: {endpoints: [%q]}}", "http://"+etcd.Start(t).Addr))
	t.Run("a plan changes in the window", o.planChanges)
	t.Run("a reset", o.resets)
	t.Run("two writers", o.twoWriters)
	t.Run("no change is lost", o.noChangeIsLost)
	t.Run("modes of all instances", o.modes)
	t.Run("every command with and without the scope", o.everyCommand)
}

// TestAdministrationInPostgres: ctl source init makes the tables, and the commands are the same.
func TestAdministrationInPostgres(t *testing.T) { //nolint:tparallel // as above
	t.Parallel()
	_, source := tablesOfObjects(t)
	o := openOffice(t, source)
	t.Run("two writers", o.twoWriters)
	t.Run("modes of all instances", o.modes)
	t.Run("every command with and without the scope", o.everyCommand)
}

func (o *office) planChanges(t *testing.T) {
	o.t = t
	if passed, _ := o.decide(o.first, "acme", 4); passed != 3 {
		t.Errorf("%d requests of the free plan pass, want 3", passed)
	}
	o.must(o.second, "quota", "plan", "acme", "paid", "--reason", "contract 4711")
	for _, at := range []*instance{o.first, o.second} {
		eventually(t, "the plan in force", func() bool {
			return strings.Contains(o.must(at, "quota", "usage", "acme"), "acme      paid")
		})
	}
	if used := o.used(o.second, "acme"); used != 3 {
		t.Errorf("%d units are used after the change, want the 3 from before", used)
	}
	eventually(t, "the end of the remembered refusal", func() bool {
		passed, _ := o.decide(o.first, "acme", 1)
		return passed == 1
	})
	passed, metered := o.decide(o.second, "acme", 3)
	if passed != 3 || metered != 2 {
		t.Errorf("%d requests pass with %d metered units, want 3 and 2: units 5 to 7, and 5 are included", passed, metered)
	}
}

func (o *office) resets(t *testing.T) {
	o.t = t
	o.decide(o.first, "someone", 3)
	if passed, _ := o.decide(o.first, "someone", 1); passed != 0 {
		t.Fatal("a fourth request passes")
	}
	if out := o.must(o.second, "quota", "reset", "someone", "api_calls", "--dry-run"); !strings.Contains(out, "3 units are used") {
		t.Errorf("the dry run prints %s", out)
	}
	out := o.must(o.second, "quota", "reset", "someone", "api_calls", "--reason", "outage")
	if want := "api_calls year: 3 units were used, and are given back\ninstances hold at most 0 units ahead\n"; out != want {
		t.Errorf("the reset prints %s, want %s", out, want)
	}
	if used := o.used(o.first, "someone"); used != 0 {
		t.Errorf("%d units are used after the reset", used)
	}
	passed := 0
	eventually(t, "the end of the remembered refusal", func() bool {
		n, _ := o.decide(o.first, "someone", 1)
		passed += n
		return n == 1
	})
	more, _ := o.decide(o.second, "someone", 4)
	if passed+more != 3 {
		t.Errorf("%d requests pass after the reset, want 3", passed+more)
	}
	if line := o.second.audit("reset"); !strings.Contains(line, `"reason":"outage"`) || !strings.Contains(line, "api_calls year: 3 units") {
		t.Errorf("the log line is %s", line)
	}
	if status, out, _ := o.ctl(o.first, "quota", "reset", "someone", "calls"); status != 1 || out != "" {
		t.Errorf("a reset of an unknown quota has status %d and prints %s", status, out)
	}
}

// audit gives the last audit line of an action.
func (i *instance) audit(action string) (last string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, line := range i.log {
		if line.Msg == "audit" && strings.Contains(line.text, `"action":"`+action+`"`) {
			last = line.text
		}
	}
	return last
}

// twoWriters: of two that have read one revision, one loses and is told. It repeats its change, and both are there.
func (o *office) twoWriters(t *testing.T) {
	o.t = t
	o.must(o.first, "quota", "set", "shared", "plan=paid")
	var read admin.Object
	if err := json.Unmarshal([]byte(o.must(o.first, "--json", "quota", "get", "shared")), &read); err != nil {
		t.Fatal(err)
	}
	revision := strconv.FormatInt(read.Revision, 10)
	o.must(o.first, "quota", "set", "shared", "note=first", "--revision", revision)
	status, stdout, stderr := o.ctl(o.second, "quota", "set", "shared", "hard.api_calls=7", "--revision", revision)
	if status != 1 || stdout != "" || !strings.Contains(stderr, "and the change was made for revision "+revision+": read it again") {
		t.Errorf("the loser has status %d\n%s%s", status, stdout, stderr)
	}
	o.must(o.second, "quota", "set", "shared", "hard.api_calls=7")
	text := o.must(o.first, "quota", "get", "shared")
	for _, want := range []string{"plan: paid", "note: first", "api_calls: 7"} {
		if !strings.Contains(text, want) {
			t.Errorf("the customer is %s, want %s in it", text, want)
		}
	}
}

// noChangeIsLost: several operators change different fields of one customer at once, and repeat lost changes.
func (o *office) noChangeIsLost(t *testing.T) {
	o.t = t
	fields := []string{"plan=paid", "note=busy", "hard.api_calls=9"} // The last one is a fault until the plan is paid.
	o.must(o.first, "quota", "set", "busy", "plan=free")
	var writers sync.WaitGroup
	lost := make([]int, len(fields))
	for n, field := range fields {
		writers.Go(func() {
			at := []*instance{o.first, o.second}[n%2]
			for {
				status, _, stderr := o.ctl(at, "quota", "set", "busy", field)
				if status == 0 {
					return
				}
				if lost[n]++; !strings.Contains(stderr, "read it again") && !strings.Contains(stderr, "hard") {
					t.Errorf("%s: status %d, %s", field, status, stderr)
					return
				}
			}
		})
	}
	writers.Wait()
	text := o.must(o.second, "quota", "get", "busy")
	for _, want := range []string{"plan: paid", "note: busy", "api_calls: 9"} {
		if !strings.Contains(text, want) {
			t.Errorf("the customer is %s, want %s in it; lost attempts: %v", text, want, lost)
		}
	}
}

// everyCommand runs each command with the scope, and then without it.
func (o *office) everyCommand(t *testing.T) {
	o.t = t
	whole := file(t, "key: [ip]\nlimits: [9/1m]\n")
	for _, c := range []struct{ command, want, record string }{
		{"quota list", "NAME", ""},
		{"quota set every plan=paid note=x --reason a", "customers/every has revision", "set customers/every by alice from 127.0.0.1"},
		{"quota get every", "plan: paid", ""},
		{"quota plan every free --reason b", "customers/every has revision", "plan customers/every by alice"},
		{"quota usage every", "every     free", ""},
		{"quota reset every", "given back", ""},
		{"quota delete every --reason c", "customers/every is deleted", "delete customers/every by alice"},
		{"plan list", "free", ""},
		{"plan set huge quotas.api_calls=[{limit:9000/year}] --reason d", "plans/huge has revision", "set plans/huge by alice"},
		{"plan get huge", "9000/year", ""},
		{"plan delete huge --reason e", "plans/huge is deleted", "delete plans/huge by alice"},
		{"rule list", "api", ""},
		{"rule set slow --reason f --file " + whole, "rules/slow has revision", "set rules/slow by alice"},
		{"rule get slow", "9/1m", ""},
		{"rule delete slow --reason g", "rules/slow is deleted", "delete rules/slow by alice"},
		{"audit", "by alice", ""},
		{"audit rules/slow", "before: key:", ""},
		{"usage", "WINDOW", ""},
		{"usage --csv", "customer,plan,quota", ""},
	} {
		args := strings.Fields(c.command)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "limit:", "limit: ")
		}
		if out := o.must(o.first, args...); !strings.Contains(out, c.want) {
			t.Errorf("ctl %s prints %s, want %s", c.command, out, c.want)
		}
		status, out, stderr := call(t, append([]string{"ctl", "--admin", o.first.Admin, "--token-file", o.reader}, args...)...)
		if status != 1 || out != "" && !strings.HasPrefix(out, "NAME ") || !strings.Contains(stderr, `caller "reader" lacks the scope administer`) {
			t.Errorf("ctl %s without the scope: status %d\n%s%s", c.command, status, out, stderr)
		}
		if c.record == "" {
			continue
		}
		record, _, _ := strings.Cut(o.must(o.second, "audit", "--last", "1"), "\n")
		reason := args[len(args)-1]
		if i := strings.Index(c.command, "--reason "); i >= 0 {
			reason = c.command[i+len("--reason "):][:1]
		}
		if !strings.Contains(record, c.record) || !strings.HasSuffix(record, ": "+reason) {
			t.Errorf("ctl %s has the record %s, want %s, with the reason %s", c.command, record, c.record, reason)
		}
		if line := o.first.audit(args[1]); !strings.Contains(line, `"caller":"alice"`) || !strings.Contains(line, `"reason":"`+reason+`"`) {
			t.Errorf("ctl %s has the log line %s", c.command, line)
		}
	}
	if strings.Contains(o.first.text(), "hg_") || strings.Contains(o.second.text(), "hg_") {
		t.Error("a log has a token")
	}
}

// TestAdministrationDocument runs the commands of docs/administration.md, and compares their output with the page.
func TestAdministrationDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "administration.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, further, _ := strings.Cut(string(text), "## Start with an empty source\n")
	empty, others, _ := strings.Cut(further, "\n## ")
	if ran := runAdministration(t, page+others) + runAdministration(t, empty); ran != 15 {
		t.Errorf("%d commands were found, want 15", ran)
	}
}

// runAdministration starts a server with the first file of a text, and runs the commands of the text.
func runAdministration(t *testing.T, text string) (ran int) {
	t.Helper()
	_, settings, _ := strings.Cut(text, "```yaml\n")
	settings, rest, _ := strings.Cut(settings, "```\n")
	settings = strings.NewReplacer("127.0.0.1:2379", etcd.Start(t).Addr, `{http: "127.0.0.1:8080"}`, `{grpc: "127.0.0.1:0", http: "127.0.0.1:0"}`).
		Replace(settings)
	i := launchServer(t, file(t, settings+"admin: {listen: '127.0.0.1:0', health: '127.0.0.1:0'}\n"))
	o := &office{t: t}
	for _, block := range strings.Split(rest, "```\n$ headgate ctl ")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for command := range strings.SplitSeq(block, "\n$ headgate ctl ") {
			line, want, _ := strings.Cut(command, "\n")
			if strings.HasPrefix(line, "quota usage") {
				o.decide(i, "acme", 2)
			}
			run := exec.CommandContext(t.Context(), "bash", "-c", binary+" ctl --admin "+i.Admin+" "+line)
			run.Dir = t.TempDir()
			got, _ := run.CombinedOutput()
			if seen, want := administered(string(got), i.Admin), administered(want, i.Admin); seen != want {
				t.Errorf("ctl %s\ngot\n%s\nwant\n%s", line, seen, want)
			}
			ran++
		}
	}
	return ran
}

// administered replaces what depends on the time, the ports and etcd.
func administered(output, at string) string {
	output = strings.ReplaceAll(strings.TrimSpace(output), at, "127.0.0.1:9902")
	for _, replace := range [...][2]string{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
		{`revision \d+`, "revision N"},
		{`127\.0\.0\.1:\d{4,5}`, "ADDRESS"},
		{`(?m)^(acme +)\d+ +`, "${1}N "},
		{`REVISION +IN`, "REVISION IN"},
	} {
		output = regexp.MustCompile(replace[0]).ReplaceAllString(output, replace[1])
	}
	return output
}
