package fairshare

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/sorting"
)

// WriteOf prints the shares of several instances: the clients of all of them with their sums in the order of the shape, and under each the
// row of each instance. The capacity is that of one instance.
func WriteOf(out io.Writer, answers []admin.From[admin.Shares], shape Shape) error {
	type row struct {
		instance string
		share    *admin.ClientShare
	}
	of, capacity := map[string][]row{}, int64(0)
	for i := range answers {
		a := &answers[i].Answer
		capacity += a.Capacity
		for n := range a.Clients {
			of[a.Clients[n].Client] = append(of[a.Clients[n].Client], row{answers[i].Instance, &a.Clients[n]})
		}
	}
	var sums []admin.ClientShare
	for name, rows := range of {
		all, long := make([]admin.ClientShare, 0, len(rows)), false
		for _, r := range rows {
			all, long = append(all, *r.share), long || r.share.Lasting
		}
		sum := *totalOf(all)
		sum.Client, sum.Lasting = name, long
		sums = append(sums, sum)
	}
	sorting.Func(sums, func(a, b admin.ClientShare) int { return cmp.Compare(a.Client, b.Client) })
	sums = shape.ordered(sums)
	rows := [][]string{{"CLIENT", "DEMAND", "SIZE", "BORROWED", "LENT", "SEEN", "ADMITTED", "REFUSED", "LASTING", "INSTANCE"}}
	shown := shape.shown(len(sums))
	for i := range sums[:shown] {
		name := terminal.Printable(sums[i].Client)
		rows = append(rows, append(shareRow(name, &sums[i], lasting(&sums[i])), "all"))
		for _, r := range of[sums[i].Client] {
			rows = append(rows, append(shareRow(name, r.share, lasting(r.share)), terminal.Printable(r.instance)))
		}
	}
	lines := append([]string{fmt.Sprintf("capacity %d in %d instances", capacity, len(answers))}, terminal.Aligned(rows, shape.Columns)...)
	if left := len(sums) - shown; left > 0 {
		lines = append(lines, fmt.Sprintf("(%d more; --json has all)", left))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}
