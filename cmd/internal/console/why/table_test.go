package why

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/guard"
)

// rewrite updates the .want files. Review the differences before a commit.
var rewrite = flag.Bool("rewrite", false, "write what is printed to the .want files of testdata")

// TestWriteWhy compares the whole text of explanations. All lines but commands and long words have at most 80 columns.
func TestWriteWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := newInstance(t, `
exempt: [{path: /healthz}]
fair_share: {client: "header:X-Client-Id", capacity: 40, cycle: 1s, anonymous: nobody}
throttle: {concurrency: 8}
plans: {free: {quotas: {api: [{limit: 2/1d}]}}, paid: {quotas: {api: [{limit: 50/1d}]}}}
default_plan: free
customers: {acme: {plan: paid, note: see contract 7}}
rules:
  - {name: search, match: {path: /search}, key: ["header:X-Client-Id"], limits: [3/m, 100/h], ban: {after: 8/m, for: 10m}}
  - {name: login, match: {path: /login, methods: [POST]}, key: [ip], limits: [2/m], count: {status: [401]}}
  - {name: all, match: {path: "/**"}, key: [ip], limits: [2/h], mode: shadow}
  - {name: bill, match: {path: /pay}, key: ["header:X-Client-Id"], quota: api}
  - {name: other, match: {path: "/v2/*"}, key: [ip], limits: [2/s]}
`, func(c *guard.Config) { c.FairShare.Seed = 1 })
		client := func(request, name string) *admin.ExplainOrder {
			return &admin.ExplainOrder{Request: request, Address: "192.0.2.1", Headers: admin.ExplainHeaders{"X-Client-Id": {name}}}
		}
		hostile := "o'brien \u202e <b>\"x\" " + strings.Repeat("long ", 9)
		for n, one := range []struct {
			name  string
			order *admin.ExplainOrder
			times int
		}{
			{"passes", client("GET /search", "acme"), 0},
			{"refused", client("GET /search", "acme"), 4},
			{"banned", client("GET /search", "acme"), 5},
			{"quota", client("GET /pay", "small"), 2},
			{"customer", client("GET /pay", "acme"), 1},
			{"exempt", client("GET /healthz", "acme"), 0},
			{"login", client("POST /login", "acme"), 2},
			{"invalid", client("GET /a/..;/b", "acme"), 0},
			{"hostile", client("GET /search", hostile), 4},
			{"nothing", client("GET /nothing", "acme"), 0},
		} {
			time.Sleep(time.Duration(n) * time.Millisecond) //nolint:forbidigo // because the bubble of synctest has its own clock.
			for range one.times {
				x, err := i.decide(t, one.order)
				if err != nil {
					t.Fatal(err)
				}
				x.Done(guard.Refused)
			}
			golden(t, one.name, i.said(t, one.order))
		}
	})
}

// golden compares the text of an explanation with a file.
func golden(t *testing.T, name string, w *admin.Why) {
	t.Helper()
	var out bytes.Buffer
	if err := WriteWhy(&out, w); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if terminal.Width().StringWidth(line) > columns && !strings.Contains(line, program) {
			t.Errorf("%s has a line of more than %d columns: %q", name, columns, line)
		}
		if strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("%s has a character that a terminal interprets: %q", name, line)
		}
	}
	file := filepath.Join("testdata", name+".want")
	if *rewrite {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, out.String(), want)
	}
}
