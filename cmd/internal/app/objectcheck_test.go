package app

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestTwoInstancesWrite: another instance writes between the check and the write. Both changes are valid alone, and not together. The
// second one is checked again, and refused with its faults.
func TestTwoInstancesWrite(t *testing.T) {
	const large = "{after: meter, quotas: {api_calls: [{limit: 9/30d, hard: 100}]}}"
	for _, c := range []struct{ what, other, otherBody, verb, page, body, want string }{
		{
			"a customer of a plan that is deleted", "DELETE /api/v1/plans?name=large&revision=1", "",
			"PUT", "/api/v1/customers?name=acme&revision=0", "{plan: large}", "large",
		},
		{
			"a plan that gets a customer", "PUT /api/v1/customers?name=acme&revision=0", "{plan: large}",
			"DELETE", "/api/v1/plans?name=large&revision=1", "", "is the plan of customer",
		},
		{
			"a plan that gets a lower hard limit", "PUT /api/v1/plans?name=large&revision=1", "{after: meter, quotas: {api_calls: [{limit: 9/30d, hard: 20}]}}",
			"PUT", "/api/v1/customers?name=acme&revision=0", "{plan: large, hard: {api_calls: 50}}", "is more than",
		},
		{
			"two customers that count a period by two algorithms", "PUT /api/v1/customers?name=beta&revision=0", "{limits: {api_calls: [{limit: 9/1h}]}}",
			"PUT", "/api/v1/customers?name=acme&revision=0", "{limits: {api_calls: [{limit: 9/1h, algorithm: sliding_window}]}}", "one algorithm",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			a := startAdministered(t)
			if status, text := a.call(t, "PUT", "/api/v1/plans?name=large&revision=0", large); status != 200 {
				t.Fatal(text)
			}
			a.source.between = func() {
				verb, page, _ := strings.Cut(c.other, " ")
				if status, text := a.call(t, verb, page, c.otherBody); status != 200 {
					t.Errorf("the other writer: %d %s", status, text)
				}
			}
			status, text := a.call(t, c.verb, c.page, c.body)
			if status != 422 || !strings.Contains(text, c.want) {
				t.Errorf("got %d %s, want 422 with %q", status, text, c.want)
			}
			if all := a.audited(t); len(all) != 2 {
				t.Errorf("got the records %+v, want those of the plan and the winner", all)
			}
		})
	}
}

// TestPlainCustomers: a customer is added and gets another plan while another instance changes another customer. Neither write is
// repeated.
func TestPlainCustomers(t *testing.T) {
	a := startAdministered(t)
	others := 0
	var write func()
	write = func() {
		if status, text := a.call(t, "PUT", fmt.Sprint("/api/v1/customers?name=beta&revision=", others), "{note: x}"); status != 200 {
			t.Error(text)
		}
		others++
		a.source.between = write
	}
	a.source.between = write
	for revision, body := range []string{"{}", "{plan: paid}"} {
		page := fmt.Sprint("/api/v1/customers?name=acme&revision=", revision)
		if status, text := a.call(t, "PUT", page, body); status != 200 || others != revision+1 {
			t.Errorf("%s: got %d %s after %d writes of others", body, status, text, others)
		}
	}
}

// TestWritesOfOthers: some other writes delay a change, and many refuse it.
func TestWritesOfOthers(t *testing.T) {
	a := startAdministered(t)
	a.source.stale = objects.MaxWrites - 1
	if status, text := a.call(t, "PUT", "/api/v1/customers?name=acme&revision=0", "{}"); status != 200 {
		t.Errorf("after some: %d %s", status, text)
	}
	a.source.stale = objects.MaxWrites
	status, text := a.call(t, "PUT", "/api/v1/customers?name=other&revision=0", "{}")
	if status != 409 || !strings.Contains(text, "were written meanwhile") || strings.Contains(text, "may have been made") {
		t.Errorf("after many: %d %s", status, text)
	}
}

// TestHeldChange: the answer says that a change was made and is held back. A caller that does not wait is not told.
func TestHeldChange(t *testing.T) {
	a := startAdministered(t)
	a.source.holds = "customers/acme:1:1: another program has deleted its plan"
	for _, c := range []struct{ page, want string }{
		{"/api/v1/customers?name=acme&revision=0", a.source.holds},
		{"/api/v1/customers?name=other&revision=0&wait=0", ""},
	} {
		got := askWith[admin.Written](t, a, "PUT", c.page, "{plan: paid}")
		if got.Revision != 1 || got.InForce || got.Held != c.want {
			t.Errorf("%s: got %+v, want it held back by %q", c.page, got, c.want)
		}
	}
}

// TestMissingPlan: a plan that another program has deleted, and that is still in force here, is not given to a customer.
func TestMissingPlan(t *testing.T) {
	a := startAdministered(t)
	a.call(t, "PUT", "/api/v1/plans?name=large&revision=0", "{quotas: {api_calls: [{limit: 100/30d}]}}")
	delete(a.source.all, source.Key{Kind: source.Plan, Name: "large"})
	status, text := a.call(t, "PUT", "/api/v1/customers?name=acme&revision=0", "{plan: large}")
	if status != 422 || !strings.Contains(text, "plans/large is not in the source") {
		t.Errorf("got %d %s", status, text)
	}
}

// TestRepair: an object with any bytes is replaced or deleted.
func TestRepair(t *testing.T) {
	for _, bad := range []string{"\xff\x00", strings.Repeat("x", source.MaxText+1), strings.Repeat("\xff", source.MaxText), "{plan: nonsense}", "- a"} {
		for _, verb := range []string{"PUT", "DELETE"} {
			t.Run(verb, func(t *testing.T) { repair(t, verb, bad) })
		}
	}
}

func repair(t *testing.T, verb, bad string) {
	t.Helper()
	a := startAdministered(t)
	key := source.Key{Kind: source.Customer, Name: "acme"}
	a.source.all[key] = source.Object{Key: key, Text: bad, Revision: 7}
	status, text := a.call(t, verb, "/api/v1/customers?name=acme&revision=7", map[string]string{"PUT": "{plan: paid}"}[verb])
	if status != 200 {
		t.Errorf("%s over %.20q: got %d %.300s", verb, bad, status, text)
		return
	}
	w := source.Write{Key: key, Delete: true, Revision: 1, Record: a.source.records[0]}
	if err := w.Check(); err != nil {
		t.Errorf("%s over %.20q: the record is refused: %v", verb, bad, err)
	}
}

// TestCertainFailure: an error that has certainly changed nothing does not say that a change may have been made, and has no line.
func TestCertainFailure(t *testing.T) {
	a := startAdministered(t)
	a.source.fails = errors.New("the password is wrong")
	status, text := a.call(t, "PUT", "/api/v1/customers?name=acme&revision=0", "{}")
	if status != 503 || strings.Contains(text, "may have been made") || len(a.audited(t)) != 0 {
		t.Errorf("got %d %s and the lines %v", status, text, a.audited(t))
	}
}

// TestAuditAtEveryLevel: the audit lines are there with each log.level.
func TestAuditAtEveryLevel(t *testing.T) {
	a := startAdministered(t)
	out := new(logs.Text)
	a.instance.options.Log = slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	objects.Audit(a.instance.options.Log, &source.Record{Action: "set", Object: "customers/acme"}, nil)
	objects.Audit(a.instance.options.Log, &source.Record{Action: "set", Object: "customers/acme"}, errors.New("broke"))
	if text := out.String(); strings.Count(text, `"msg":"audit"`) != 2 || !strings.Contains(text, `"level":"ERROR"`) {
		t.Errorf("got %s", text)
	}
}

// TestAuditPages: the records come page by page, the newest first.
func TestAuditPages(t *testing.T) {
	a := startAdministered(t)
	for i := range 5 {
		a.call(t, "PUT", fmt.Sprintf("/api/v1/customers?name=c%d&revision=0", i), "{}")
	}
	var got []string
	for after, pages := "", 0; pages < 4; pages++ {
		page := ask200[admin.Audit](t, a, "GET", "/api/v1/audit?limit=2"+after)
		for i := range page.Records {
			got = append(got, page.Records[i].Object)
		}
		if page.Next == "" {
			break
		}
		after = "&after=" + page.Next
	}
	if want := "[customers/c4 customers/c3 customers/c2 customers/c1 customers/c0]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
