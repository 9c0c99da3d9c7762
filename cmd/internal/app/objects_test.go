package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// mapSource is a source in a map, which this process follows at once.
type mapSource struct {
	mu       sync.Mutex
	all      map[source.Key]source.Object
	records  []source.Record
	inForce  *config.Objects
	readOnly bool
	fails    error // of Write, after it has written
	between  func()
	view     source.View
	behind   int64  // what the instance has not followed
	holds    string // why changes are held back; "" puts them in force
	stale    int    // how many writes fail, because of another writer
}

func newMapSource(t *testing.T, c *config.Config) *mapSource {
	t.Helper()
	o, err := config.NewObjects(c)
	if err != nil {
		t.Fatal(err)
	}
	m := &mapSource{all: map[source.Key]source.Object{}}
	var faults config.ObjectFaults
	if m.inForce, faults = o.With(source.Change{All: true}); faults != nil {
		t.Fatal(faults)
	}
	return m
}

func (*mapSource) Follow(context.Context, source.Receiver) {}
func (*mapSource) Close() error                            { return nil }
func (*mapSource) Place() string                           { return "map" }

func (m *mapSource) Lacks() string {
	if m.Objects().Known() {
		return ""
	}
	return "the file needs a plan"
}

func (m *mapSource) Position() int64 { return m.view.Position - m.behind }

func (m *mapSource) Held(key source.Key) (object *source.Object, why string, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, found := m.all[key]
	return &o, m.holds, found && m.holds != ""
}

func (m *mapSource) View(context.Context) (source.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view, nil
}

// refused compares as a source does.
func (m *mapSource) refused(w *source.Write) error {
	if has := m.all[w.Key].Revision; has != w.Revision {
		return &source.ConflictError{Key: w.Key, Revision: has, Expected: w.Revision}
	}
	for _, need := range w.Needs {
		if _, found := m.all[need]; !found {
			return &source.MissingError{Key: need}
		}
	}
	if v := w.View; v != nil && (v.RulesAndPlans != m.view.RulesAndPlans || !v.WithoutCustomers && v.Customers != m.view.Customers) {
		return source.ErrStale
	}
	if m.stale--; m.stale >= 0 {
		return source.ErrStale
	}
	return nil
}

func (m *mapSource) Objects() *config.Objects {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inForce
}

func (m *mapSource) Writer() source.Writer {
	if m.readOnly {
		return nil
	}
	return m
}

func (m *mapSource) Get(_ context.Context, key source.Key) (source.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, found := m.all[key]
	if !found {
		return object, source.ErrNotFound
	}
	return object, nil
}

func (m *mapSource) Write(_ context.Context, w source.Write) (int64, error) {
	if then := m.between; then != nil {
		m.between = nil
		then()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refused(&w); err != nil {
		return 0, err
	}
	change := source.Change{}
	if w.Delete {
		delete(m.all, w.Key)
		change.Deleted = []source.Key{w.Key}
	} else {
		m.all[w.Key] = source.Object{Key: w.Key, Text: w.Text, Revision: w.Revision + 1}
		change.Objects = []source.Object{m.all[w.Key]}
	}
	m.view.Position++
	if w.Kind == source.Customer {
		m.view.Customers = m.view.Position
	} else {
		m.view.RulesAndPlans = m.view.Position
	}
	if m.holds == "" {
		next, faults := m.inForce.With(change)
		if faults != nil {
			return 0, faults
		}
		m.inForce = next
	}
	m.records = slices.Insert(m.records, 0, w.Record)
	return m.all[w.Key].Revision, m.fails
}

func (m *mapSource) Records(_ context.Context, q source.RecordQuery) (page source.RecordPage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, err := strconv.Atoi(cmp.Or(q.After, "0"))
	if err != nil {
		return page, source.ErrBadCursor
	}
	for i := from; i < len(m.records); i++ {
		if len(page.Records) == q.Number {
			page.Next = strconv.Itoa(i)
			break
		}
		if q.Object == "" || m.records[i].Object == q.Object {
			page.Records = append(page.Records, m.records[i])
		}
	}
	return page, nil
}

// administered is an instance with quotas, whose caller ops has the token secret.
type administered struct {
	instance *Instance
	source   *mapSource
	log      *logs.Text
}

const administeredText = `
identity: {trusted_proxies: [127.0.0.1]}
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls}
default_plan: free
plans:
  free: {quotas: {api_calls: [{limit: 3/30d}]}}
  paid: {after: meter, quotas: {api_calls: [{limit: 5/30d, hard: 9, soft: 50%%}]}}
customers:
  filed: {plan: paid, note: in the file}
server:
  grpc: '127.0.0.1:0'
  http: '127.0.0.1:0'
  callers: [{name: ops, tokens: ["sha256:%s"], scopes: [administer]}]
`

func startAdministered(t *testing.T) *administered {
	t.Helper()
	digest := access.DigestOf("secret")
	o := serverOptions(t, fmt.Sprintf(administeredText, hex.EncodeToString(digest[:])))
	o.Config.Admin.Auth = config.AuthToken
	a := &administered{log: new(logs.Text), source: newMapSource(t, o.Config)}
	o.Log = slog.New(slog.NewJSONHandler(a.log, nil))
	a.instance = startServer(t, o)
	a.instance.objects.Followed = a.source
	return a
}

// call sends a call as the caller ops.
func (a *administered) call(t *testing.T, verb, page, body string) (status int, text string) {
	t.Helper()
	return callAdmin(t, a.instance, "secret", verb, page, body)
}

// callAdmin sends a call to the admin listener of an instance, with a token unless that is empty.
func callAdmin(t *testing.T, i *Instance, token, verb, page, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), verb, "http://"+i.Addresses().Admin+page, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// audited gives the audit lines of the log as records.
func (a *administered) audited(t *testing.T) (all []source.Record) {
	t.Helper()
	for line := range strings.Lines(a.log.String()) {
		var read struct {
			source.Record

			Msg string `json:"msg"`
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		if read.Msg == "audit" {
			all = append(all, read.Record)
		}
	}
	return all
}

// TestObjectCalls: the table reads as the day of an operator.
func TestObjectCalls(t *testing.T) {
	a := startAdministered(t)
	odd := "a%2Fb%20%26%2F..%2F%3F%22"
	long := "{note: " + strings.Repeat("x", 64<<10) + "}"
	for _, c := range []struct {
		what, verb, page, body string
		status                 int
		want                   string
	}{
		{"a list", "GET", "/api/v1/customers", "", 200, `"origin": "file"`},
		{"plans", "GET", "/api/v1/plans?limit=1", "", 200, `"next": "free"`},
		{"the next page", "GET", "/api/v1/plans?limit=1&after=free", "", 200, `"name": "paid"`},
		{"rules", "GET", "/api/v1/rules?name=api", "", 200, `api_calls`},
		{"a wrong limit", "GET", "/api/v1/rules?limit=0", "", 400, `limit must be`},
		{"no such customer", "GET", "/api/v1/customers?name=acme", "", 404, `"code": "not_found"`},
		{"no name", "PUT", "/api/v1/customers?revision=0", "{}", 400, `name is missing`},
		{"no revision", "PUT", "/api/v1/customers?name=acme", "{}", 400, `revision is missing`},
		{"no body", "PUT", "/api/v1/customers?name=acme&revision=0", "", 400, `is empty`},
		{"a long body", "PUT", "/api/v1/customers?name=acme&revision=0", long, 400, `longer than`},
		{"a long reason", "PUT", "/api/v1/customers?name=acme&revision=0&reason=" + strings.Repeat("r", 1025), "{}", 400, `reason must`},
		{"a reason of two lines", "PUT", "/api/v1/customers?name=acme&revision=0&reason=a%0Ab", "{}", 400, `reason must`},
		{"a dry run", "PUT", "/api/v1/customers?name=acme&revision=0&dry_run=1", "{plan: paid}", 200, `"dry_run": true`},
		{"a dry run with a fault", "PUT", "/api/v1/customers?name=acme&revision=0&dry_run=1", "{plan: padi}", 422, `did you mean paid?`},
		{"nothing was written", "GET", "/api/v1/customers?name=acme", "", 404, ``},
		{"a new customer", "PUT", "/api/v1/customers?name=acme&revision=0&reason=signed", "{plan: paid, note: first}", 200, `"revision": 1`},
		{"the same again", "PUT", "/api/v1/customers?name=acme&revision=0", "{plan: free}", 409, `exists already, with revision 1`},
		{"what is there", "PUT", "/api/v1/customers?name=acme&revision=0", "{plan: free}", 409, `"text": "{plan: paid, note: first}"`},
		{"another plan", "PATCH", "/api/v1/customers?name=acme&revision=1", `{"plan": "free"}`, 200, `plan: \"free\"`},
		{"a stale revision", "PATCH", "/api/v1/customers?name=acme&revision=1", `{"plan": "paid"}`, 409, `"code": "conflict"`},
		{"a field away", "PATCH", "/api/v1/customers?name=acme&revision=2", `{"note": null}`, 200, `"revision": 3`},
		{"a plan", "PUT", "/api/v1/plans?name=large&revision=0", "{quotas: {api_calls: [{limit: 100/30d}]}}", 200, `"revision": 1`},
		{"a customer of the plan", "PATCH", "/api/v1/customers?name=acme&revision=3", "plan: large", 200, `"revision": 4`},
		{"a plan in use", "DELETE", "/api/v1/plans?name=large&revision=1", "", 422, `large`},
		{"a rule", "PUT", "/api/v1/rules?name=slow&revision=0", `{"key": ["ip"], "limits": ["9/1m"]}`, 200, `"revision": 1`},
		{"an odd name", "PUT", "/api/v1/customers?name=" + odd + "&revision=0", "{plan: paid}", 200, `"name": "a/b \u0026/../?\""`},
		{"is found", "GET", "/api/v1/customers?name=" + odd, "", 200, `"revision": 1`},
		{"a control in a name", "PUT", "/api/v1/customers?name=a%0Ab&revision=0", "{}", 400, `printable`},
		{"a wrong wait", "PUT", "/api/v1/customers?name=x&revision=0&wait=no", "{}", 400, `wait must be 0`},
		{"records of no object", "GET", "/api/v1/audit?object=acme", "", 400, `object must be`},
		{"records after nothing", "GET", "/api/v1/audit?after=x", "", 400, `use next of the page before`},
		{"bytes that are no text", "GET", "/api/v1/customers?name=%ff", "", 400, `UTF-8`},
		{"a customer of the file", "PATCH", "/api/v1/customers?name=filed&revision=0", "{plan: free}", 409, `is in the configuration file`},
		{"a deletion", "DELETE", "/api/v1/customers?name=acme&revision=4", "", 200, `"revision": 0`},
		{"a second deletion", "DELETE", "/api/v1/customers?name=acme&revision=4", "", 409, `was deleted after it was read at revision 4`},
		{"a deletion of nothing", "DELETE", "/api/v1/customers?name=none&revision=0", "", 404, `there is no customer`},
		{"records", "GET", "/api/v1/audit?object=customers/acme", "", 200, `"action": "delete"`},
		{"one record", "GET", "/api/v1/audit?limit=1", "", 200, `"before": "`},
	} {
		if status, text := a.call(t, c.verb, c.page, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %d %s, want %d with %s", c.what, status, text, c.status, c.want)
		}
	}
	a.checkRecords(t)
}

// checkRecords: each change has one line and one record, and they agree.
func (a *administered) checkRecords(t *testing.T) {
	t.Helper()
	lines := a.audited(t)
	var actions []string
	for i := range lines {
		l := lines[i]
		actions = append(actions, l.Action+" "+l.Object)
		if l.Caller != "ops" || !strings.HasPrefix(l.Address, "127.0.0.1:") || l.Time.IsZero() {
			t.Errorf("the line has caller %q, address %q, time %s", l.Caller, l.Address, l.Time)
		}
		if l.Time = a.source.records[len(lines)-1-i].Time; l != a.source.records[len(lines)-1-i] {
			t.Errorf("the line %+v and the record %+v differ", l, a.source.records[len(lines)-1-i])
		}
	}
	want := []string{
		"set customers/acme", "plan customers/acme", "set customers/acme", "set plans/large", "plan customers/acme", "set rules/slow",
		`set customers/a/b &/../?"`, "delete customers/acme",
	}
	if !slices.Equal(actions, want) {
		t.Errorf("got the actions %q, want %q", actions, want)
	}
	if first := lines[0]; first.Reason != "signed" || first.Before != "" || first.After != "{plan: paid, note: first}" {
		t.Errorf("the first line is %+v", first)
	}
	if strings.Contains(a.log.String(), "secret") {
		t.Error("the log has the token")
	}
}

// TestReadOnly: what can only be read says so, and can be read.
func TestReadOnly(t *testing.T) {
	a := startAdministered(t)
	for _, c := range []struct {
		what string
		with func()
		want string
	}{
		{"a source", func() { a.source.readOnly = true }, "the source map can only be read"},
		{"a file", func() { a.instance.objects.Followed = nil }, "configuration file, which headgate only reads"},
	} {
		c.with()
		for _, verb := range []string{"PUT", "PATCH", "DELETE"} {
			if status, text := a.call(t, verb, "/api/v1/customers?name=new&revision=0", "{plan: paid}"); status != 409 || !strings.Contains(text, c.want) {
				t.Errorf("%s, %s: got %d %s, want %s", c.what, verb, status, text, c.want)
			}
		}
		if status, text := a.call(t, "GET", "/api/v1/customers", ""); status != 200 || !strings.Contains(text, "filed") {
			t.Errorf("%s: the list is %d %s", c.what, status, text)
		}
		if status, text := a.call(t, "GET", "/api/v1/audit", ""); status != 409 || !strings.Contains(text, admin.CodeReadOnly) {
			t.Errorf("%s: the records are %d %s", c.what, status, text)
		}
	}
}

// TestLostRace: another writer comes between the check and the write. Its change stays, and the loser is told.
func TestLostRace(t *testing.T) {
	a := startAdministered(t)
	const page = "/api/v1/customers?name=acme&revision=0"
	a.source.between = func() {
		if status, text := a.call(t, "PUT", page, "{note: winner}"); status != 200 {
			t.Errorf("the other writer: %d %s", status, text)
		}
	}
	status, text := a.call(t, "PUT", page, "{note: loser}")
	if status != 409 || !strings.Contains(text, `"revision": 1`) || !strings.Contains(text, "winner") {
		t.Errorf("got %d %s, want a conflict with the object of the winner", status, text)
	}
	if all := a.audited(t); len(all) != 1 || all[0].After != "{note: winner}" {
		t.Errorf("got the records %+v, want that of the winner", all)
	}
}

// TestUnknownResult: after another error than a conflict, the change may have been made, and the log says so.
func TestUnknownResult(t *testing.T) {
	a := startAdministered(t)
	a.source.fails = fmt.Errorf("the connection broke: %w", source.ErrUnknownResult)
	status, text := a.call(t, "PUT", "/api/v1/customers?name=acme&revision=0", "{}")
	if status != 503 || !strings.Contains(text, "may have been made: read the object") {
		t.Errorf("got %d %s", status, text)
	}
	if !strings.Contains(a.log.String(), `"error":"the connection broke: the change may have been made`) {
		t.Errorf("the log has no line about it: %s", a.log)
	}
}

// TestOtherOrigin: a web page in the browser of an operator changes nothing, and makes the instance read nothing.
func TestOtherOrigin(t *testing.T) {
	a := startAdministered(t)
	for _, route := range a.instance.objects.Calls() {
		verb, page, _ := strings.Cut(route.Pattern, " ")
		req, err := http.NewRequestWithContext(t.Context(), verb, "http://"+a.instance.Addresses().Admin+page, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret")
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %s", route.Pattern, resp.Status)
		}
	}
}
