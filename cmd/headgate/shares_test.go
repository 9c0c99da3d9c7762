package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/app"
)

// article are the shares of the second cycle of the example that docs tell.
func article() *app.Shares {
	return &app.Shares{
		Cycle: 2, Capacity: 40, Mode: "enforce", Division: "loan", Reclaim: "at_once", CycleSeconds: 1, LastAdmitted: 37, LastCapacity: 40,
		Clients: []app.ClientShare{
			{Client: "A", Demand: 2, Size: 5, Lent: 5, Seen: 3, Admitted: 3},
			{Client: "B", Demand: 15, Size: 15, Borrowed: 5, Seen: 17, Admitted: 15, Refused: 2},
			{Client: "C", Demand: 10, Size: 10},
			{Client: "D\x1b[31m", Demand: 10, Size: 10},
		},
	}
}

const articleTable = `cycle 2, capacity 40 per 1s, enforce; the last used 37 of 40 (92%); loan, at_once
CLIENT      DEMAND  SIZE  BORROWED  LENT  SEEN  ADMITTED  REFUSED
A           2       5     0         5     3     3         0
B           15      15    5         0     17    15        2
C           10      10    0         0     0     0         0
D\x1b[31m   10      10    0         0     0     0         0
TOTAL of 4  37      40    5         5     20    18        2
`

func TestWriteShares(t *testing.T) {
	var out bytes.Buffer
	if err := writeShares(&out, article()); err != nil || out.String() != articleTable {
		t.Errorf("the table is\n%s\nwant\n%s%v", out.String(), articleTable, err)
	}
	out.Reset()
	if err := writeShares(&out, &app.Shares{Cycle: 1, Mode: "shadow", CycleSeconds: 0.25}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"capacity 0 per 250ms", "shadow (passthrough: nothing is refused)", "there was no cycle before", "TOTAL of 0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the first cycle lacks %q:\n%s", want, out.String())
		}
	}
}

// TestSharesOfTheManual: the page for operators shows what is printed.
func TestSharesOfTheManual(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := article()
	s.Clients[3].Client = "D"
	var out bytes.Buffer
	if err := writeShares(&out, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```\n"+out.String()+"```\n") {
		t.Errorf("docs/operating.md does not show\n%s", out.String())
	}
}

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"home-loan": "home-loan", "": "", "a b": "a b", "café": "café", "'": "'", "a\nb\tc": `a\nb\tc`,
		"\x1b[2J": `\x1b[2J`, "\x00": `\x00`, "\xff\xfe": `\xff\xfe`, "\ufffd": "\ufffd", "\u202egnp": `\u202egnp`, "\u00a0": `\u00a0`,
	} {
		if got := printable(name); got != want {
			t.Errorf("%q is printed as %q, want %q", name, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	table := strings.Split("head,names,a,b,c,d,e,total", ",")
	for room, want := range map[int]string{
		8: "head,names,a,b,c,d,e,total", 7: "head,names,a,b,c,(2 more; --json has all),total",
		5: "head,names,a,(4 more; --json has all),total", 4: "head,names,(5 more; --json has all),total", 2: "head,names", 0: "", -3: "",
	} {
		if got := strings.Join(fit(slices.Clone(table), room), ","); got != want {
			t.Errorf("in %d lines %s\nwant %s", room, got, want)
		}
	}
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{{"größer", 3, "grö"}, {"ab", 3, "ab"}, {"ab", 2, "ab"}, {"ab", 0, "ab"}} {
		if got := cut(c.line, c.columns); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.line, c.columns, got, c.want)
		}
	}
}

// flaky is an admin address: each answer is the next of a list; after its end the watch is over.
func flaky(t *testing.T, end context.CancelFunc, answers ...func(http.ResponseWriter)) *ctlCommand {
	t.Helper()
	asked := make(chan func(http.ResponseWriter), len(answers))
	for _, a := range answers {
		asked <- a
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != sharesPage || r.Host != "localhost" {
			t.Errorf("%s is asked for %s", r.Host, r.URL.Path)
		}
		select {
		case answer := <-asked:
			answer(w)
		default:
			end()
		}
	}))
	t.Cleanup(s.Close)
	return &ctlCommand{Admin: strings.TrimPrefix(s.URL, "http://")}
}

// tells answers with a cycle.
func tells(cycle uint64) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		s := article()
		s.Cycle = cycle
		text, _ := json.MarshalIndent(s, "", "  ")
		w.Write(text)
	}
}

// dies ends the connection, as an instance that is being restarted does.
func dies(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// leaves answers as another program might that has taken the port.
func leaves(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) }

func hasNone(w http.ResponseWriter) { http.Error(w, app.NoFairShare, http.StatusNotFound) }

// watched gives what a watch writes until the answers are at their end.
func watched(t *testing.T, change func(*watch), answers ...func(http.ResponseWriter)) (out, told string, c *ctlCommand) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var written, errors bytes.Buffer
	w := &watch{ctl: flaky(t, cancel, answers...), out: &written, errors: &errors, every: time.Millisecond}
	change(w)
	if err := w.run(ctx); err != nil {
		t.Errorf("the watch ends with %v", err)
	}
	return written.String(), errors.String(), w.ctl
}

// TestWatch: tables follow each other; an instance that goes and comes back, or starts
// anew in between, or has no fair share for a while, is told of once, apart from the tables.
func TestWatch(t *testing.T) {
	out, told, c := watched(t, func(*watch) {}, tells(2), tells(3), dies, leaves, tells(9), tells(1), hasNone, tells(4))
	for _, want := range []string{"cycle 2,", "cycle 3,", "cycle 9,", "cycle 1,"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "TOTAL of 4"); n != 5 || strings.Contains(out, "\x1b") {
		t.Errorf("%d tables, or codes of a terminal, are in the output:\n%s", n, out)
	}
	lines := strings.Split(strings.TrimSpace(told), "\n")
	if len(lines) != 5 {
		t.Fatalf("the errors are\n%s\nwant 5 lines", told)
	}
	for i, want := range []string{
		"EOF; asking again", c.Admin + " answers again", c.Admin + " has started anew", "has no fair share", c.Admin + " answers again",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q in it", i+1, lines[i], want)
		}
	}
}

// TestWatchJSON: programs get a document a line, and nothing else.
func TestWatchJSON(t *testing.T) {
	out, told, _ := watched(t, func(w *watch) { w.ctl.JSON = true }, tells(2), dies, tells(3))
	var cycles []uint64
	for line := range strings.Lines(out) {
		var s app.Shares
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		cycles = append(cycles, s.Cycle)
	}
	if !slices.Equal(cycles, []uint64{2, 3}) || !strings.Contains(told, "asking again") {
		t.Errorf("cycles %v; told %q", cycles, told)
	}
}

// TestWatchTerminal: a table is written over the one before, no higher and no wider than
// the window; while the instance is away the last one stays.
func TestWatchTerminal(t *testing.T) {
	out, told, _ := watched(t, func(w *watch) {
		w.window = func() (rows, columns int) { return 7, 30 }
	}, tells(2), dies, tells(3))
	screens := strings.Split(out, "\x1b[H")[1:]
	if len(screens) != 3 || told != "" {
		t.Fatalf("%d screens: %q; told %q", len(screens), out, told)
	}
	const want = "cycle 2, capacity 40 per 1s, e\x1b[K\n" +
		"CLIENT      DEMAND  SIZE  BORR\x1b[K\n" +
		"A           2       5     0   \x1b[K\n" +
		"(3 more; --json has all)\x1b[K\n" +
		"TOTAL of 4  37      40    5   \x1b[K\n" +
		"\x1b[K\n\x1b[J"
	if screens[0] != want {
		t.Errorf("the first screen is %q, want %q", screens[0], want)
	}
	if !strings.Contains(screens[1], "cycle 2,") || !strings.Contains(screens[1], "ctl: ") || !strings.Contains(screens[2], "answers again") {
		t.Errorf("the screens while it is away and back are %q and %q", screens[1], screens[2])
	}
}

// TestWatchNobody: what does not answer to begin with is an error, and so is an instance without
// fair share; the latter says what to configure.
func TestWatchNobody(t *testing.T) {
	for _, watching := range []bool{false, true} {
		c := flaky(t, func() {}, hasNone)
		err := sharesCommand{Watch: watching, Every: time.Second}.Run(t.Context(), c, new(bytes.Buffer), errorWriter{new(bytes.Buffer)})
		if err == nil || !strings.Contains(err.Error(), "fair_share: {client: header:X-Client-Id") {
			t.Errorf("watching %v: the error is %v", watching, err)
		}
	}
	var stderr bytes.Buffer
	if status := run([]string{"ctl", "shares", "--watch", "--admin", "127.0.0.1:1"}, new(bytes.Buffer), &stderr); status != exitFailed ||
		!strings.Contains(stderr.String(), "nothing answers on 127.0.0.1:1") {
		t.Errorf("status %d: %s", status, stderr.String())
	}
	if status := run([]string{"ctl", "shares", "--watch", "--every", "0s"}, new(bytes.Buffer), &stderr); status != exitWrong ||
		!strings.Contains(stderr.String(), "--every is 0s") {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}
