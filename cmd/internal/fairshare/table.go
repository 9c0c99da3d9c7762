package fairshare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/sorting"
)

// Shape selects and orders the clients of a table, and bounds its size.
type Shape struct {
	// Order is name, demand, size, borrowed or refused. "" sorts by name.
	Order string
	// Top is the number of clients in the table. 0 means all.
	Top int
	// Rows and Columns bound the table. 0 means no bound. A table always has at least
	// aroundClients rows and enough columns for its numbers.
	Rows, Columns int
}

const (
	// aroundClients is the number of lines beside the clients: two lines of the head, the
	// line for omitted clients, and the total.
	aroundClients = 4
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
func (t *Shape) ordered(clients []admin.ClientShare) []admin.ClientShare {
	number := numberOf(t.Order)
	if number == nil {
		return clients
	}
	clients = slices.Clone(clients)
	sorting.StableFunc(clients, func(a, b admin.ClientShare) int { return cmp.Compare(number(&b), number(&a)) })
	return clients
}

// shown returns how many of the clients fit into the table.
func (t *Shape) shown(clients int) int {
	n := clients
	if t.Top > 0 {
		n = min(n, t.Top)
	}
	around := aroundClients
	if n == clients {
		around-- // No client is omitted, so that the table needs no line for omitted clients.
	}
	if t.Rows >= aroundClients && n+around > t.Rows {
		n = t.Rows - aroundClients
	}
	return n
}

// Write prints shares as a table.
func Write(out io.Writer, s *admin.Shares, shape Shape) error {
	_, err := fmt.Fprintln(out, strings.Join(Lines(s, shape), "\n"))
	return err
}

// Lines returns the lines of the table. The total includes the omitted clients.
func Lines(s *admin.Shares, shape Shape) []string {
	clients := shape.ordered(s.Clients)
	shown := shape.shown(len(clients))
	rows := make([][]string, 0, shown+2)
	rows = append(rows, []string{"CLIENT", "DEMAND", "SIZE", "BORROWED", "LENT", "SEEN", "ADMITTED", "REFUSED", "LASTING"})
	for i := range clients[:shown] {
		rows = append(rows, shareRow(terminal.Printable(clients[i].Client), &clients[i], lasting(&clients[i])))
	}
	rows = append(rows, shareRow(fmt.Sprintf("TOTAL of %d", len(clients)), totalOf(clients), strconv.Itoa(lastingOf(clients))))
	lines := append([]string{Head(s)}, terminal.Aligned(rows, shape.Columns)...)
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

// Head describes the cycle, the settings, and the use of the previous cycle.
func Head(s *admin.Shares) string {
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
		s.Cycle, s.Capacity, CycleOf(s.CycleSeconds), mode, used, s.Division, s.Reclaim)
}

// CycleOf returns a cycle's length as a duration.
func CycleOf(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}
