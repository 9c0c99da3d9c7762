package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestQuotaArguments: an empty argument, as of a variable that a script has not set, changes nothing.
func TestQuotaArguments(t *testing.T) {
	calls := []string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.URL.RawQuery)
		_, _ = w.Write([]byte(`{}`))
	}))
	defer s.Close()
	for _, c := range []struct {
		args   string
		exit   int
		says   string
		called string
	}{
		{"quota reset acme|", exitUsage, "<quota> is empty", ""},
		{"quota reset | api_calls", exitUsage, "<customer> is empty", ""},
		{"quota reset acme --period=", exitUsage, "--period is empty", ""},
		{"quota reset acme", exitOK, "", "customer=acme"},
		{"quota reset acme api_calls --period=30d", exitOK, "", "customer=acme&period=30d&quota=api_calls"},
		{"usage --from=2027-01-01 --to=2027-01-31", exitOK, "", "from=2027-01-01&limit=500&to=2027-01-31"},
		{"quota usage acme --from=2027-01-01T00:00:00Z", exitOK, "", "customer=acme&from=2027-01-01T00%3A00%3A00Z&limit=500"},
		{"audit acme", exitUsage, "customers/NAME", ""},
		{"audit customers/acme --last=0", exitUsage, "--last 0", ""},
		{"audit customers/acme --last=5000", exitOK, "", "limit=1000&object=customers%2Facme name=acme"},
		{"quota plan acme paid --revision=1 --no-wait", exitOK, "", "name=acme&revision=1&wait=0"},
	} {
		calls = calls[:0]
		args := []string{"ctl", "--admin", s.URL}
		for a := range strings.FieldsSeq(strings.ReplaceAll(c.args, "|", " EMPTY ")) {
			args = append(args, strings.TrimPrefix(a, "EMPTY"))
		}
		var out, faults strings.Builder
		exit := run(args, &out, &faults)
		if called := strings.Join(calls, " "); exit != c.exit || !strings.Contains(faults.String(), c.says) || called != c.called {
			t.Errorf("%s: exit %d, %q, calls %q; want %d, %q, %q", c.args, exit, faults.String(), called, c.exit, c.says, c.called)
		}
	}
}
