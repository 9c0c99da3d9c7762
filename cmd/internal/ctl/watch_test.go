package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/fairshare"
)

// flaky serves an admin listener that gives the answers one after another, and then ends the watch.
func flaky(t *testing.T, end context.CancelFunc, answers ...func(http.ResponseWriter)) *Instance {
	t.Helper()
	asked := make(chan func(http.ResponseWriter), len(answers))
	for _, a := range answers {
		asked <- a
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != sharesPage || r.Host != "localhost" {
			t.Errorf("%s is requested with %s", r.Host, r.URL.Path)
		}
		select {
		case answer := <-asked:
			answer(w)
		default:
			end()
		}
	}))
	t.Cleanup(s.Close)
	return &Instance{Admin: strings.TrimPrefix(s.URL, "http://")}
}

// tells answers with the shares of a cycle.
func tells(cycle uint64) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		s := article()
		s.Cycle = cycle
		text, _ := json.MarshalIndent(s, "", "  ")
		w.Write(text)
	}
}

// dies closes the connection, as an instance does at a restart.
func dies(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// leaves answers as another program on the same port might.
func leaves(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) }

func hasNone(w http.ResponseWriter) { http.Error(w, admin.NoFairShare, http.StatusNotFound) }

// watched returns what a watch writes until the last answer.
func watched(t *testing.T, change func(*watch), answers ...func(http.ResponseWriter)) (out, warnings string, c *Instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var written, errors bytes.Buffer
	w := &watch{ctl: flaky(t, cancel, answers...), out: &written, errors: &errors, every: time.Millisecond, view: new(sharesView)}
	change(w)
	if err := w.run(ctx); err != nil {
		t.Errorf("the error of the watch is %v", err)
	}
	return written.String(), errors.String(), w.ctl
}

// TestWatch checks that one table follows another. An instance that is unreachable, has
// restarted, or fair share is off for a while is reported once, on the output for errors.
func TestWatch(t *testing.T) {
	out, warnings, c := watched(t, func(*watch) {}, tells(2), tells(3), dies, leaves, tells(9), tells(1), hasNone, tells(4))
	for _, want := range []string{"cycle 2,", "cycle 3,", "cycle 9,", "cycle 1,"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "TOTAL of 4"); n != 5 || strings.Contains(out, "\x1b") {
		t.Errorf("the output has %d tables, or escape sequences:\n%s", n, out)
	}
	lines := strings.Split(strings.TrimSpace(warnings), "\n")
	if len(lines) != 5 {
		t.Fatalf("the messages are\n%s\nwant 5 lines", warnings)
	}
	for i, want := range []string{
		"EOF; retrying", c.Admin + " answers again", c.Admin + " has restarted", "fair share is off", c.Admin + " answers again",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q in it", i+1, lines[i], want)
		}
	}
}

// TestWatchJSON checks that the output has one document per line and nothing else.
func TestWatchJSON(t *testing.T) {
	out, warnings, _ := watched(t, func(w *watch) { w.ctl.JSON = true }, tells(2), dies, tells(3))
	var cycles []uint64
	for line := range strings.Lines(out) {
		var s admin.Shares
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		cycles = append(cycles, s.Cycle)
	}
	if !slices.Equal(cycles, []uint64{2, 3}) || !strings.Contains(warnings, "retrying") {
		t.Errorf("cycles %v; messages %q", cycles, warnings)
	}
}

// TestWatchTerminal checks that each table overwrites the previous table and fits into the
// window. While the instance is unreachable, the last table stays.
func TestWatchTerminal(t *testing.T) {
	out, warnings, _ := watched(t, func(w *watch) {
		w.window = func() (rows, columns int) { return 7, 30 }
	}, tells(2), dies, tells(3))
	screens := strings.Split(out, "\x1b[H")[1:]
	if len(screens) != 3 || warnings != "" {
		t.Fatalf("%d screens: %q; messages %q", len(screens), out, warnings)
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
		t.Errorf("the screens without and with the instance are %q and %q", screens[1], screens[2])
	}
}

// TestWatchInvented checks that names invented by clients do not break the table. With long names
// and wide characters, each row still has its numbers on a terminal of 80 columns.
func TestWatchInvented(t *testing.T) {
	for _, name := range []string{
		strings.Repeat("x", 64) + "~" + strings.Repeat("0", 32), // rule.ClientName shortens long names to this form.
		strings.Repeat("漢", 42),
		strings.Repeat("e\u0301", 42),
		strings.Repeat("\x1b", 128),
	} {
		s := article()
		s.Clients[3].Client = name
		var screen strings.Builder
		w := &watch{out: &screen, view: &sharesView{last: s}, window: func() (rows, columns int) { return 24, 80 }}
		if err := w.draw(""); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for line := range strings.Lines(strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(screen.String())) {
			line = strings.TrimRight(line, "\n")
			wide, marks := strings.Count(line, "漢"), strings.Count(line, "\u0301")
			if n := utf8.RuneCountInString(line) + wide - marks; n > 80 {
				t.Errorf("a line takes %d columns of 80: %q", n, line)
			}
			if strings.HasPrefix(line, "B ") && strings.HasSuffix(line, " 2        no") || strings.Contains(line, terminal.Ellipsis) && strings.HasSuffix(line, " 0        no") {
				refused++
			}
		}
		if refused != 2 {
			t.Errorf("the refusals of B and of the invented client are missing:\n%s", screen.String())
		}
	}
}

// TestWatchTop checks that the window bounds --top.
func TestWatchTop(t *testing.T) {
	for rows, want := range map[int]string{24: "(2 more; --json has all)", 8: "(2 more; --json has all)", 7: "(3 more; --json has all)"} {
		out, _, _ := watched(t, func(w *watch) {
			w.view = &sharesView{shape: fairshare.Shape{Order: "demand", Top: 2}}
			w.window = func() (int, int) { return rows, 80 }
		}, tells(2))
		lines := strings.Split(out, "\n")
		if !strings.HasPrefix(lines[2], "B ") || !strings.Contains(out, want) || strings.Count(out, " more;") != 1 {
			t.Errorf("in %d rows the screen is %q, want B first and %q", rows, out, want)
		}
	}
}

// TestWatchFails checks the error of an instance that has never answered, and of an instance
// without fair share. The second error says what to configure.
func TestWatchFails(t *testing.T) {
	for _, watching := range []bool{false, true} {
		c := flaky(t, func() {}, hasNone)
		s := &Shares{Out: new(bytes.Buffer), Errors: new(bytes.Buffer)}
		if watching {
			s.Every = time.Second
		}
		err := c.Shares(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), "fair_share: {client: header:X-Client-Id") {
			t.Errorf("watching %v: the error is %v", watching, err)
		}
	}
	err := (&Instance{Admin: "127.0.0.1:1"}).Shares(t.Context(), &Shares{Every: time.Second})
	if err == nil || !strings.Contains(err.Error(), "nothing answers on 127.0.0.1:1") {
		t.Errorf("the error is %v", err)
	}
}
