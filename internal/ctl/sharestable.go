package ctl

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/admin"
)

// tableShape says which clients a table of shares shows, in what order, and what room it has.
type tableShape struct {
	// order is a word of Shares.Sort; "" is by name.
	order string
	// top is how many clients are shown; 0 is all.
	top int
	// rows and columns are those of the room; 0 is as many as it likes. A table is never
	// lower than aroundClients, and as wide as its numbers.
	rows, columns int
}

const (
	// aroundClients is how many lines a table has beside its clients: two above, the one
	// that says how many are left out, and the total.
	aroundClients = 4
	// leastName is what names have of a row, in columns, however large the numbers are.
	leastName = 12
	// gap is what lies between two columns of a table.
	gap = 2
)

// numberOf gives the number that a table is ordered by; nil is by name.
func numberOf(order string) func(*admin.ClientShare) int64 {
	switch order {
	case "demand":
		return func(c *admin.ClientShare) int64 { return c.Demand }
	case "size":
		return func(c *admin.ClientShare) int64 { return c.Size }
	case "borrowed":
		return func(c *admin.ClientShare) int64 { return c.Borrowed }
	case "refused":
		return func(c *admin.ClientShare) int64 { return c.Refused }
	default:
		return nil
	}
}

// ordered gives the clients in the order of the table, which came by name.
func (t *tableShape) ordered(clients []admin.ClientShare) []admin.ClientShare {
	number := numberOf(t.order)
	if number == nil {
		return clients
	}
	clients = slices.Clone(clients)
	slices.SortStableFunc(clients, func(a, b admin.ClientShare) int { return cmp.Compare(number(&b), number(&a)) })
	return clients
}

// shown gives how many of so many clients there is room for.
func (t *tableShape) shown(clients int) int {
	n := clients
	if t.top > 0 {
		n = min(n, t.top)
	}
	around := aroundClients
	if n == clients {
		around-- // None is left out.
	}
	if t.rows >= aroundClients && n+around > t.rows {
		n = t.rows - aroundClients
	}
	return n
}

// writeShares prints shares for people.
func writeShares(out io.Writer, s *admin.Shares, shape tableShape) error {
	_, err := fmt.Fprintln(out, strings.Join(sharesLines(s, shape), "\n"))
	return err
}

// sharesLines gives the lines of the table of shares. The total is of all clients,
// those too that are left out.
func sharesLines(s *admin.Shares, shape tableShape) []string {
	clients := shape.ordered(s.Clients)
	shown := shape.shown(len(clients))
	rows := make([][]string, 0, shown+2)
	rows = append(rows, []string{"CLIENT", "DEMAND", "SIZE", "BORROWED", "LENT", "SEEN", "ADMITTED", "REFUSED", "LASTING"})
	for i := range clients[:shown] {
		rows = append(rows, shareRow(printable(clients[i].Client), &clients[i], lasting(&clients[i])))
	}
	rows = append(rows, shareRow(fmt.Sprintf("TOTAL of %d", len(clients)), totalOf(clients), strconv.Itoa(lastingOf(clients))))
	lines := append([]string{sharesHead(s)}, aligned(rows, shape.columns)...)
	if left := len(clients) - shown; left > 0 {
		lines = slices.Insert(lines, len(lines)-1, fmt.Sprintf("(%d more; --json has all)", left))
	}
	return lines
}

// lasting says whether later names leave a client its default share.
func lasting(c *admin.ClientShare) string {
	if c.Lasting {
		return "yes"
	}
	return "no"
}

func lastingOf(clients []admin.ClientShare) (n int) {
	for i := range clients {
		if clients[i].Lasting {
			n++
		}
	}
	return n
}

func shareRow(name string, c *admin.ClientShare, lasting string) []string {
	row := []string{name}
	for _, n := range [...]int64{c.Demand, c.Size, c.Borrowed, c.Lent, c.Seen, c.Admitted, c.Refused} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	return append(row, lasting)
}

func totalOf(clients []admin.ClientShare) *admin.ClientShare {
	var total admin.ClientShare
	for i := range clients {
		c := &clients[i]
		total.Demand, total.Size = total.Demand+c.Demand, total.Size+c.Size
		total.Borrowed, total.Lent = total.Borrowed+c.Borrowed, total.Lent+c.Lent
		total.Seen, total.Admitted, total.Refused = total.Seen+c.Seen, total.Admitted+c.Admitted, total.Refused+c.Refused
	}
	return &total
}

// aligned makes lines of rows, each column as wide as its widest cell. Names, the first
// column, are shortened to what the numbers leave of so many columns; 0 is no bound.
// The last row's is the total's, and stays whole.
func aligned(rows [][]string, columns int) []string {
	widths := make([]int, len(rows[0]))
	numbers := 0
	for column := 1; column < len(widths); column++ {
		for _, row := range rows {
			widths[column] = max(widths[column], width().StringWidth(row[column]))
		}
		numbers += gap + widths[column]
	}
	total := len(rows) - 1
	room := max(columns-numbers, leastName, width().StringWidth(rows[total][0]))
	for i, row := range rows {
		if columns > 0 && i < total {
			row[0] = shorten(row[0], room)
		}
		widths[0] = max(widths[0], width().StringWidth(row[0]))
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		var line strings.Builder
		for column, cell := range row[:len(row)-1] {
			line.WriteString(width().FillRight(cell, gap+widths[column]))
		}
		lines[i] = line.String() + row[len(row)-1]
	}
	return lines
}

// sharesHead says what is shared, and how much of it the last cycle used.
func sharesHead(s *admin.Shares) string {
	used := "there was no cycle before"
	switch {
	case s.LastCapacity > 0:
		used = fmt.Sprintf("the last used %d of %d (%.0f%%)", s.LastAdmitted, s.LastCapacity,
			100*float64(s.LastAdmitted)/float64(s.LastCapacity))
	case s.Cycle > 1:
		used = "the last had no capacity"
	}
	mode := s.Mode
	if mode == "shadow" {
		mode = "shadow (nothing is refused)"
	}
	return fmt.Sprintf("cycle %d, capacity %d per %s, %s; %s; %s, %s",
		s.Cycle, s.Capacity, cycleOf(s.CycleSeconds), mode, used, s.Division, s.Reclaim)
}

// cycleOf writes a cycle's length as configurations do.
func cycleOf(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}
