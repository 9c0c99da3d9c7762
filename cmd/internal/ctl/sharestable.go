package ctl

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// tableShape selects and orders the clients of a table, and bounds its size.
type tableShape struct {
	// order is a value of Shares.Sort. "" sorts by name.
	order string
	// top is the number of clients in the table. 0 means all.
	top int
	// rows and columns bound the table. 0 means no bound. A table always has at least
	// aroundClients rows and enough columns for its numbers.
	rows, columns int
}

const (
	// aroundClients is the number of lines beside the clients: two lines of the head, the
	// line for omitted clients, and the total.
	aroundClients = 4
	// minName is the minimum width of the name column.
	minName = 12
	// gap is the number of spaces between two columns.
	gap = 2
)

// numberOf returns the function for the number to sort by. It returns nil for the name.
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

// ordered returns the clients in the order of the table. The input is sorted by name.
func (t *tableShape) ordered(clients []admin.ClientShare) []admin.ClientShare {
	number := numberOf(t.order)
	if number == nil {
		return clients
	}
	clients = slices.Clone(clients)
	slices.SortStableFunc(clients, func(a, b admin.ClientShare) int { return cmp.Compare(number(&b), number(&a)) })
	return clients
}

// shown returns how many of the clients fit into the table.
func (t *tableShape) shown(clients int) int {
	n := clients
	if t.top > 0 {
		n = min(n, t.top)
	}
	around := aroundClients
	if n == clients {
		around-- // No client is omitted, so that the table needs no line for omitted clients.
	}
	if t.rows >= aroundClients && n+around > t.rows {
		n = t.rows - aroundClients
	}
	return n
}

// writeShares prints shares as a table.
func writeShares(out io.Writer, s *admin.Shares, shape tableShape) error {
	_, err := fmt.Fprintln(out, strings.Join(sharesLines(s, shape), "\n"))
	return err
}

// sharesLines returns the lines of the table. The total includes the omitted clients.
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

// lasting formats whether a client is lasting: newer names do not reduce its default share.
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

// aligned formats rows with each column as wide as its widest cell. It shortens the names in
// the first column so that the rows fit. 0 columns means no bound. The name in the last
// row, the total, is not shortened.
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
	room := max(columns-numbers, minName, width().StringWidth(rows[total][0]))
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

// sharesHead describes the cycle, the settings, and the use of the previous cycle.
func sharesHead(s *admin.Shares) string {
	used := "no previous cycle"
	switch {
	case s.LastCapacity > 0:
		used = fmt.Sprintf("the previous cycle used %d of %d (%.0f%%)", s.LastAdmitted, s.LastCapacity,
			100*float64(s.LastAdmitted)/float64(s.LastCapacity))
	case s.Cycle > 1:
		used = "the previous cycle had no capacity"
	}
	mode := s.Mode
	if mode == "shadow" {
		mode = "shadow (nothing is refused)"
	}
	return fmt.Sprintf("cycle %d, capacity %d per %s, %s; %s; %s, %s",
		s.Cycle, s.Capacity, cycleOf(s.CycleSeconds), mode, used, s.Division, s.Reclaim)
}

// cycleOf returns a cycle's length as a duration.
func cycleOf(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}
