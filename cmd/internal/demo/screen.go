package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/internal/config/field"
)

// screen prints the cycles.
type screen struct {
	Options

	with    *http.Client
	when    schedule
	clients []*client

	act   int   // The act of the last printed caption, counted from 1.
	most  int64 // The most units admitted in one cycle.
	drawn int   // The number of lines of the table on the terminal.

	capacity int64
	shown    []shown // For the picture, at most one story.
}

func (s *screen) open(capacity int64) error {
	s.capacity = capacity
	_, err := fmt.Fprintf(s.Out, `headgate demo: %d clients, one proxy, one service; nothing leaves this machine.
  service   %s, which can take %s in %s
  proxy     http://%s
  shares    headgate ctl shares --watch --admin %s
  join in   curl -i -H 'X-Client-Id: me' http://%s/
Each size is computed from the demand of the previous cycle. During a cycle, loans
are released, and a part is reserved for clients that may come back.

`, len(s.clients), s.Upstream.URL(), field.Counted(capacity, "request"), s.when.cycle, s.Proxy, s.Admin, s.Proxy)
	return err
}

// The times of the two queries, as fractions of a cycle. The late query follows nearly all
// requests of the cycle. The early query in the next cycle sees all of them counted.
const (
	late  = 0.9
	early = 0.05
)

// follow prints each finished cycle until ctx ends. It omits a cycle when the proxy does not
// answer in time.
func (s *screen) follow(ctx context.Context) error {
	for cycle := 0; ; cycle++ {
		within, ok := s.at(ctx, cycle, late)
		if !ok {
			return nil
		}
		next, ok := s.at(ctx, cycle+1, early)
		if !ok {
			return nil
		}
		if within == nil || next == nil {
			continue
		}
		if rows, ok := account(within, next); ok {
			if err := s.show(cycle, rows); err != nil {
				return err
			}
		}
	}
}

// at waits until the fraction of a cycle and queries the shares. They are nil when the query
// fails. at returns false when ctx has ended.
func (s *screen) at(ctx context.Context, cycle int, part float64) (*shares, bool) {
	if !waitUntil(ctx, s.when.start(cycle).Add(time.Duration(part*float64(s.when.cycle)))) {
		return nil, false
	}
	now, err := query(ctx, s.with, s.Admin)
	if err != nil {
		now = nil
	}
	return now, ctx.Err() == nil
}

// show prints the rows of a cycle.
func (s *screen) show(cycle int, rows []row) error {
	s.most = max(s.most, total(rows).admitted)
	if s.Picture != nil && len(s.shown) < length(s.Acts) {
		s.shown = append(s.shown, shown{cycle, rows})
	}
	act := actAt(s.Acts, cycle)
	if s.Terminal {
		return s.draw(s.caption(act) + "\n\n" + table(rows))
	}
	if s.act != act+1 {
		s.act = act + 1
		if _, err := fmt.Fprintf(s.Out, "\n%s\n", s.caption(act)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(s.Out, line(cycle+1, rows))
	return err
}

func (s *screen) caption(act int) string {
	return fmt.Sprintf("%d of %d: %s", act+1, len(s.Acts), s.Acts[act].Caption)
}

// draw writes a table over the previous table.
func (s *screen) draw(table string) error {
	up := ""
	if s.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn)
	}
	s.drawn = strings.Count(table, "\n")
	_, err := fmt.Fprint(s.Out, up, table)
	return err
}

// line formats a cycle as one line.
func line(cycle int, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cycle %2d", cycle)
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s %d: %d of %d", r.client, r.size, r.admitted, r.asked)
	}
	return b.String() + "  (size: admitted of asked)"
}

// table formats a cycle as a table. In a bar, each sign is a unit of a share.
func table(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "CLIENT\tASKED\tSIZE\tBORROWED\tLENT\tADMITTED\tREFUSED\t# own + borrowed - lent\n")
	write := func(name, bar string, r *row) {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", name, r.asked, r.size, r.borrowed, r.lent, r.admitted, r.refused, bar)
	}
	for i := range rows {
		write(rows[i].client, bar(&rows[i]), &rows[i])
	}
	all := total(rows)
	write("TOTAL", "", &all)
	_ = w.Flush() // A strings.Builder returns no error.
	return b.String()
}

// maxBar bounds the length of a bar, for a configuration with a larger capacity.
const maxBar = 60

func bar(r *row) string {
	var bar strings.Builder
	for _, part := range []struct {
		sign string
		n    int64
	}{{"#", r.own}, {"+", r.borrowed}, {"-", r.lent}} {
		bar.WriteString(strings.Repeat(part.sign, int(min(max(part.n, 0), maxBar-int64(bar.Len())))))
	}
	return bar.String()
}

// close prints the summary, and writes the picture.
func (s *screen) close() error {
	if s.Picture != nil {
		if err := drawPicture(s.Picture, s.shown, s.Clients, s.Acts, s.capacity); err != nil {
			return err
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\nIN ALL\tASKED\tADMITTED\tREFUSED\n")
	var all count
	for _, c := range s.clients {
		n := c.counted()
		all.sent, all.refused, all.failed = all.sent+n.sent, all.refused+n.refused, all.failed+n.failed
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", c.name, n.sent, n.admitted, n.refused)
	}
	_ = w.Flush() // A strings.Builder returns no error.
	if all.failed > 0 {
		fmt.Fprintf(&b, "%d requests failed.\n", all.failed)
	}
	fmt.Fprintf(&b, "\nThe clients sent %d requests. The service served %d, at most %d in one cycle. The proxy refused %d.\n",
		all.sent, s.Upstream.Served(), s.most, all.refused)
	_, err := fmt.Fprint(s.Out, b.String())
	return err
}
