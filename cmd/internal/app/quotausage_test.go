package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
)

// customerHeader names a customer in a request.
type customerHeader string

func (h customerHeader) Lookup(name string) (string, bool) { return string(h), name == "X-Customer" }

// use sends n requests of a customer.
func (a *administered) use(t *testing.T, customer string, n int) {
	t.Helper()
	for range n {
		var answer guard.Answer
		req := &headgate.Request{Method: http.MethodGet, Path: "/", Header: customerHeader(customer)}
		if err := a.instance.rules.Guard().Decide(t.Context(), req, &answer); err != nil {
			t.Fatal(err)
		}
	}
}

// ask200 calls, and reads the answer into a document.
func ask200[T any](t *testing.T, a *administered, verb, page string) (document T) {
	t.Helper()
	return askWith[T](t, a, verb, page, "")
}

func askWith[T any](t *testing.T, a *administered, verb, page, body string) (document T) {
	t.Helper()
	status, text := a.call(t, verb, page, body)
	if err := json.Unmarshal([]byte(text), &document); status != 200 || err != nil {
		t.Fatalf("%s %s: %d %s, %v", verb, page, status, text, err)
	}
	return document
}

func usageLine(u *admin.CustomerUsage) string {
	line := u.Customer + " " + u.Plan
	for i := range u.Limits {
		l := &u.Limits[i]
		line += fmt.Sprintf(" %s %s %d of %d to %d, soft %d, %s", l.Quota, l.Limit, l.Used, l.Included, l.Hard, l.Soft, l.After)
	}
	return line
}

// TestUsageAndReset: the table reads as the month of two customers.
func TestUsageAndReset(t *testing.T) {
	a := startAdministered(t)
	usage := func(page string) string {
		t.Helper()
		var lines []string
		answer := ask200[admin.Usage](t, a, "GET", page)
		for i := range answer.Customers {
			lines = append(lines, usageLine(&answer.Customers[i]))
		}
		return strings.Join(lines, "\n")
	}
	a.use(t, "someone", 4) // The fourth is refused.
	a.use(t, "filed", 7)
	for _, c := range []struct{ what, page, want string }{
		{"a customer without an entry", "/api/v1/usage?customer=someone", "someone free api_calls 3/30d 3 of 3 to 3, soft 0, reject"},
		{"a customer with metered units", "/api/v1/usage?customer=filed", "filed paid api_calls 5/30d 7 of 5 to 9, soft 2, meter"},
		{"all customers with an entry", "/api/v1/usage", "filed paid api_calls 5/30d 7 of 5 to 9, soft 2, meter"},
	} {
		if got := usage(c.page); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	dry := ask200[admin.Reset](t, a, "POST", "/api/v1/usage/reset?customer=filed&dry_run=1")
	if !dry.DryRun || dry.Before[0].Used != 7 || len(a.audited(t)) != 0 {
		t.Errorf("the dry run gave %+v", dry)
	}
	reset := ask200[admin.Reset](t, a, "POST", "/api/v1/usage/reset?customer=filed&quota=api_calls&period=30d&reason=refund")
	if reset.DryRun || reset.Before[0].Used != 7 || reset.Ahead != 0 {
		t.Errorf("the reset gave %+v", reset)
	}
	if got, want := usage("/api/v1/usage?customer=filed"), "filed paid api_calls 5/30d 0 of 5 to 9, soft 2, meter"; got != want {
		t.Errorf("after the reset: got %s, want %s", got, want)
	}
	lines := a.audited(t)
	if len(lines) != 1 || lines[0].Action != "reset" || lines[0].Object != "customers/filed" || lines[0].Reason != "refund" ||
		lines[0].Before != "api_calls 30d: 7 units" || lines[0].Caller != "ops" {
		t.Errorf("got the lines %+v", lines)
	}
	if len(a.source.records) != 0 {
		t.Errorf("a reset has the records %+v, want a line only", a.source.records)
	}
}

// TestUsageOfATime: only present windows are in the store, and the answer says so.
func TestUsageOfATime(t *testing.T) {
	a := startAdministered(t)
	a.use(t, "filed", 1)
	start := *ask200[admin.Usage](t, a, "GET", "/api/v1/usage?customer=filed").Customers[0].Limits[0].Start
	at := func(d time.Duration) string { return start.Add(d).Format(time.RFC3339) }
	for _, c := range []struct{ what, query, want string }{
		{"from the start", "from=" + at(0), `"used": 1`},
		{"within", "from=" + at(time.Hour) + "&to=" + at(2*time.Hour), `"used": 1`},
		{"to the end of today", "to=" + time.Now().UTC().Format(time.DateOnly), `"used": 1`},
		{"before the window", "from=" + at(-time.Hour), "only the present windows, and the first of them began at " + at(0)},
		{"past windows", "to=" + at(0), "records of metering have past windows"},
		{"future windows", "from=" + at(30*24*time.Hour), "ends at " + at(30*24*time.Hour)},
		{"nonsense", "from=yesterday", "from is no date"},
		{"nonsense", "to=2027-13-01", "to is no date"},
		{"exchanged", "from=" + at(time.Hour) + "&to=" + at(0), "from is not before to"},
	} {
		_, text := a.call(t, "GET", "/api/v1/usage?customer=filed&"+c.query, "")
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: got %s, want %s", c.what, text, c.want)
		}
	}
}

func TestUsageRefused(t *testing.T) {
	a := startAdministered(t)
	for _, c := range []struct {
		verb, page string
		status     int
		want       string
	}{
		{"POST", "/api/v1/usage/reset", 400, "customer is missing"},
		{"POST", "/api/v1/usage/reset?customer=x&quota=calls", 404, "use one of api_calls"},
		{"POST", "/api/v1/usage/reset?customer=x&period=7d", 404, "use one of 30d"},
		{"POST", "/api/v1/usage/reset?customer=x&dry_run=yes", 400, "dry_run must be 1"},
		{"GET", "/api/v1/usage?customer=", 400, "customer is empty"},
		{"GET", "/api/v1/usage?limit=501", 400, "1 to 500"},
	} {
		if status, text := a.call(t, c.verb, c.page, ""); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: got %d %s, want %d with %s", c.verb, c.page, status, text, c.status, c.want)
		}
	}
	if len(a.audited(t)) != 0 {
		t.Error("a refused reset is in the audit lines")
	}
}

// TestUnknownParameters: a misspelt parameter changes nothing. It is refused with the names that there are.
func TestUnknownParameters(t *testing.T) {
	a := startAdministered(t)
	a.use(t, "filed", 2)
	for _, c := range []struct{ verb, page, body, want string }{
		{"PUT", "/api/v1/customers?name=x&revision=0&dryrun=1", "{}", "use name, revision, dry_run, reason"},
		{"POST", "/api/v1/usage/reset?customer=filed&qouta=api_calls", "", "use customer, quota, period, dry_run, reason"},
		{"POST", "/api/v1/usage/reset?customer=filed&quota=100%", "", "is not valid"},
		{"POST", "/api/v1/usage/reset?customer=filed&dry_run=1;", "", "is not valid"},
		{"POST", "/api/v1/usage/reset?customer=filed&quota=", "", "quota is empty"},
		{"POST", "/api/v1/usage/reset?customer=filed&customer=someone", "", "customer is empty or there more than once"},
		{"GET", "/api/v1/usage?user=filed", "", "use customer, limit, after, from, to"},
		{"GET", "/api/v1/audit?customer=filed", "", "use object, limit"},
	} {
		if status, text := a.call(t, c.verb, c.page, c.body); status != http.StatusBadRequest || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want 400 with %q", c.verb, c.page, status, text, c.want)
		}
	}
	if u := ask200[admin.Usage](t, a, "GET", "/api/v1/usage?customer=filed"); u.Customers[0].Limits[0].Used != 2 {
		t.Errorf("%d units are used, want 2", u.Customers[0].Limits[0].Used)
	}
}
