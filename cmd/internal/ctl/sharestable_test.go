package ctl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/fairshare"
)

// article returns the shares of the second cycle of the example in the docs.
func article() *admin.Shares {
	return &admin.Shares{
		Cycle: 2, Capacity: 40, Mode: "enforce", Division: "loan", Reclaim: "at_once", CycleSeconds: 1, LastAdmitted: 37, LastCapacity: 40,
		Clients: []admin.ClientShare{
			{Client: "A", Demand: 2, Size: 5, Lent: 5, Seen: 3, Admitted: 3, Lasting: true},
			{Client: "B", Demand: 15, Size: 15, Borrowed: 5, Seen: 17, Admitted: 15, Refused: 2},
			{Client: "C", Demand: 10, Size: 10},
			{Client: "D\x1b[31m", Demand: 10, Size: 10},
		},
	}
}

const articleTable = `cycle 2, capacity 40 per 1s, enforce; the previous cycle used 37 of 40 (92%); loan, at_once
CLIENT      DEMAND  SIZE  BORROWED  LENT  SEEN  ADMITTED  REFUSED  LASTING
A           2       5     0         5     3     3         0        yes
B           15      15    5         0     17    15        2        no
C           10      10    0         0     0     0         0        no
D\x1b[31m   10      10    0         0     0     0         0        no
TOTAL of 4  37      40    5         5     20    18        2        1
`

func TestWriteShares(t *testing.T) {
	var out bytes.Buffer
	if err := fairshare.Write(&out, article(), fairshare.Shape{}); err != nil || out.String() != articleTable {
		t.Errorf("the table is\n%s\nwant\n%s%v", out.String(), articleTable, err)
	}
	out.Reset()
	if err := fairshare.Write(&out, &admin.Shares{Cycle: 1, Mode: "shadow", CycleSeconds: 0.25}, fairshare.Shape{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"capacity 0 per 250ms", "shadow (nothing is refused)", "no previous cycle", "TOTAL of 0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the first cycle lacks %q:\n%s", want, out.String())
		}
	}
}

// TestSharesOfTheManual checks that docs/operating.md shows the actual output.
func TestSharesOfTheManual(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := article()
	s.Clients[3].Client = "D"
	var out bytes.Buffer
	if err := fairshare.Write(&out, s, fairshare.Shape{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```\n"+out.String()+"```\n") {
		t.Errorf("docs/operating.md does not show\n%s", out.String())
	}
}

// clients returns the shares of clients with these names.
func clients(t *testing.T, names string) *admin.Shares {
	t.Helper()
	s := &admin.Shares{Cycle: 2}
	for name := range strings.SplitSeq(names, ",") {
		s.Clients = append(s.Clients, admin.ClientShare{Client: name})
	}
	return s
}

// firsts returns the first word of each line, and the whole line about omitted clients.
func firsts(lines []string) string {
	var all []string
	for _, line := range lines {
		if strings.HasPrefix(line, "(") {
			all = append(all, line)
			continue
		}
		all = append(all, strings.Fields(line)[0])
	}
	return strings.Join(all, ",")
}

// TestTableFits checks that a table that is too long says how many clients it omits. The two
// lines of the head and the total stay.
func TestTableFits(t *testing.T) {
	for _, c := range []struct {
		rows, top int
		want      string
	}{
		{0, 0, "cycle,CLIENT,a,b,c,d,e,TOTAL"},
		{8, 0, "cycle,CLIENT,a,b,c,d,e,TOTAL"},
		{7, 0, "cycle,CLIENT,a,b,c,(2 more; --json has all),TOTAL"},
		{5, 0, "cycle,CLIENT,a,(4 more; --json has all),TOTAL"},
		{4, 0, "cycle,CLIENT,(5 more; --json has all),TOTAL"},
		{0, 9, "cycle,CLIENT,a,b,c,d,e,TOTAL"},
		{0, 5, "cycle,CLIENT,a,b,c,d,e,TOTAL"},
		{0, 2, "cycle,CLIENT,a,b,(3 more; --json has all),TOTAL"},
		{6, 2, "cycle,CLIENT,a,b,(3 more; --json has all),TOTAL"},
		{5, 2, "cycle,CLIENT,a,(4 more; --json has all),TOTAL"},
	} {
		if got := firsts(fairshare.Lines(clients(t, "a,b,c,d,e"), fairshare.Shape{Rows: c.rows, Top: c.top})); got != c.want {
			t.Errorf("in %d lines, the first %d: %s\nwant %s", c.rows, c.top, got, c.want)
		}
	}
	// A window that is too low for any table shows the first lines.
	for rows, want := range map[int]int{10: 8, 5: 3, 4: 2, 3: 1, 2: 0, 1: 0} {
		var screen strings.Builder
		w := &watch{out: &screen, view: &sharesView{last: clients(t, "a,b,c,d,e")}, window: func() (int, int) { return rows, 80 }}
		if err := w.draw("note"); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(screen.String(), "\n"); len(lines) != want+2 || !strings.Contains(lines[want], "note") {
			t.Errorf("a window of %d rows has the lines %q, want %d and the note", rows, lines, want)
		}
	}
}

// TestTableOrder checks the order: the greatest number first, and equal numbers by name. The
// total includes all clients.
func TestTableOrder(t *testing.T) {
	s := &admin.Shares{Clients: []admin.ClientShare{
		{Client: "a", Demand: 1, Size: 4, Borrowed: 0, Refused: 7},
		{Client: "b", Demand: 3, Size: 5, Borrowed: 2, Refused: 0},
		{Client: "c", Demand: 3, Size: 1, Borrowed: 9, Refused: 8},
	}}
	for order, want := range map[string]string{
		"": "a,b", "name": "a,b", "demand": "b,c", "size": "b,a", "borrowed": "c,b", "refused": "c,a",
	} {
		lines := fairshare.Lines(s, fairshare.Shape{Order: order, Top: 2})
		got := firsts(lines[2:])
		total := strings.Fields(lines[len(lines)-1])
		if got != want+",(1 more; --json has all),TOTAL" || fmt.Sprint(total) != "[TOTAL of 3 7 10 11 0 0 0 15 0]" {
			t.Errorf("by %q: %s, total %v; want %s", order, got, total, want)
		}
	}
	if s.Clients[0].Client != "a" || s.Clients[1].Client != "b" {
		t.Error("the order of what is shown has changed what was told")
	}
}

// TestTableNames checks the width of the names: the rest of the window beside the numbers, but
// never zero. Without a window, names are not shortened.
func TestTableNames(t *testing.T) {
	const long = "payments-service-of-the-north-blue"
	s := article()
	s.Clients[1].Client = long
	for columns, want := range map[int]string{
		0: long, 200: long, 64 + len(long): long, // The numbers need 64 columns.
		63 + len(long): "payments-service…f-the-north-blue",
		89:             "payments-ser…e-north-blue",
		79:             "payment…th-blue",
		40:             "paymen…-blue",
		1:              "paymen…-blue",
	} {
		row := fairshare.Lines(s, fairshare.Shape{Columns: columns})[3]
		if name := strings.Fields(row)[0]; name != want || !strings.HasSuffix(row, "  2        no") {
			t.Errorf("in %d columns the row is %q, want the name %s", columns, row, want)
		}
	}
	many := clients(t, strings.Repeat("x,", 99_999)+"x")
	if lines := fairshare.Lines(many, fairshare.Shape{Top: 1, Columns: 1}); !strings.HasPrefix(lines[len(lines)-1], "TOTAL of 100000 ") {
		t.Errorf("the total is %q", lines[len(lines)-1])
	}
}

// TestTableOfWideNames checks that the numbers are aligned after names with wide characters.
func TestTableOfWideNames(t *testing.T) {
	s := article()
	s.Clients[0].Client, s.Clients[1].Client, s.Clients[2].Client = "漢字漢字漢字", "e\u0301te\u0301", "größer"
	at := -1
	for _, line := range fairshare.Lines(s, fairshare.Shape{})[2:6] {
		before, _, _ := strings.Cut(line, "  ")
		rest := strings.TrimLeft(line[len(before):], " ")
		n := terminal.Width().StringWidth(line[:len(line)-len(rest)])
		if at >= 0 && n != at {
			t.Errorf("the numbers of %q start in column %d, want %d as in the row above", line, n, at)
		}
		at = n
	}
}

// TestSharesHead checks the text about the previous cycle. The first cycle has no previous cycle.
func TestSharesHead(t *testing.T) {
	for _, c := range []struct {
		s    admin.Shares
		want string
	}{
		{admin.Shares{Cycle: 1}, "no previous cycle"},
		{admin.Shares{Cycle: 7}, "the previous cycle had no capacity"},
		{admin.Shares{Cycle: 7, LastCapacity: 3}, "the previous cycle used 0 of 3 (0%)"},
		{admin.Shares{Cycle: 1, LastCapacity: 3, LastAdmitted: 2}, "the previous cycle used 2 of 3 (67%)"},
	} {
		if head := fairshare.Head(&c.s); !strings.Contains(head, "; "+c.want+"; ") {
			t.Errorf("%+v: %s, want %q", c.s, head, c.want)
		}
	}
}
