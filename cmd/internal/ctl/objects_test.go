package ctl_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl"
	"github.com/headgate/headgate/internal/config/source"
)

// answering is an instance that gives one answer, and keeps the queries.
func answering(t *testing.T, answer func(*http.Request) any) (c *ctl.Instance, queries *[]url.Values) {
	t.Helper()
	queries = new([]url.Values)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*queries = append(*queries, r.URL.Query())
		_ = json.NewEncoder(w).Encode(answer(r))
	}))
	t.Cleanup(s.Close)
	return &ctl.Instance{Admin: s.URL}, queries
}

// TestChangeNotInForce: a change that the instance does not decide by is an error, unless the caller does not wait.
func TestChangeNotInForce(t *testing.T) {
	key := source.Key{Kind: source.Plan, Name: "paid"}
	revision := int64(1)
	for _, c := range []struct {
		what string
		w    admin.Written
		how  ctl.Change
		want string
	}{
		{"in force", admin.Written{Revision: 2, InForce: true}, ctl.Change{}, ""},
		{"held back", admin.Written{Revision: 2, Held: "plans/paid:1:1: is the plan of customer acme"}, ctl.Change{}, "is held back, and the former version stays in force: plans/paid:1:1"},
		{"late", admin.Written{Revision: 2}, ctl.Change{}, "is not in force yet"},
		{"without a wait", admin.Written{Revision: 2}, ctl.Change{NoWait: true}, ""},
		{"dry", admin.Written{DryRun: true}, ctl.Change{DryRun: true}, ""},
	} {
		i, queries := answering(t, func(*http.Request) any { return c.w })
		c.how.Revision = &revision
		for _, asJSON := range []bool{false, true} {
			i.JSON = asJSON
			var out strings.Builder
			err := i.SetObject(t.Context(), &out, key, "{}", false, &c.how)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || out.Len() == 0 {
				t.Errorf("%s: got %v and %q, want %q", c.what, err, out.String(), c.want)
			}
		}
		if hurried := (*queries)[0].Get("wait") == "0"; hurried != c.how.NoWait {
			t.Errorf("%s: the query is %v", c.what, (*queries)[0])
		}
	}
}

// TestAuditPages: ctl follows the pages, also empty ones, up to the number.
func TestAuditPages(t *testing.T) {
	i, queries := answering(t, func(r *http.Request) any {
		at, _ := strconv.Atoi(r.URL.Query().Get("after"))
		page := admin.Audit{Next: strconv.Itoa(at + 1), Records: []source.Record{}}
		if at != 1 {
			page.Records = append(page.Records, source.Record{Action: "set", Object: fmt.Sprint("customers/", at)})
		}
		return page
	})
	var out strings.Builder
	if err := i.Audit(t.Context(), &out, "customers/acme", 3); err != nil {
		t.Fatal(err)
	}
	if n := len(*queries); n != 4 || (*queries)[3].Get("limit") != "1" || (*queries)[3].Get("object") != "customers/acme" {
		t.Errorf("%d queries, the last is %v", n, (*queries)[n-1])
	}
	if got := out.String(); !strings.Contains(got, "customers/0 ") || !strings.Contains(got, "customers/3 ") || strings.Contains(got, "no records") {
		t.Errorf("got %q", got)
	}
	if err := i.Audit(t.Context(), &out, "acme", 3); err == nil || !strings.Contains(err.Error(), "customers/NAME") {
		t.Errorf("acme is no object: got %v", err)
	}
}

// TestLargeAnswer: an answer that is cut is an error.
func TestLargeAnswer(t *testing.T) {
	i, _ := answering(t, func(*http.Request) any { return strings.Repeat("x", 17<<20) })
	i.JSON = true
	var out strings.Builder
	if err := i.Audit(t.Context(), &out, "", 3); err == nil || out.Len() != 0 {
		t.Errorf("got %d bytes and %v", out.Len(), err)
	}
}

// FuzzGetAndSet: what get prints is what set --file takes, to the byte. A terminal gets no control characters.
func FuzzGetAndSet(f *testing.F) {
	for _, text := range []string{
		"plan: paid\n", "plan: paid", "{\"note\": \"\\u001b[31m\"}", "note: \u200b\ufeff\n", "a: &x 1\r\nb: *x\r\n", "# customers/a, revision 7\nnote: x\n",
		"\tnote: x\n\n\n", "note: \x1b]0;x\x07\n", "",
	} {
		f.Add(text)
	}
	key := source.Key{Kind: source.Customer, Name: "a"}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?") // JSON has no other texts.
		i, _ := answering(t, func(*http.Request) any { return admin.Object{Text: text, Revision: 7, Origin: "source"} })
		var out strings.Builder
		if err := i.GetObject(t.Context(), &out, key); err != nil {
			t.Fatal(err)
		}
		if got := ctl.CutHead(key, out.String()); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		i.Terminal = true
		out.Reset()
		if err := i.GetObject(t.Context(), &out, key); err != nil || strings.ContainsAny(out.String(), "\x1b\x07\u200b") {
			t.Errorf("a terminal gets %q, %v", out.String(), err)
		}
	})
}
