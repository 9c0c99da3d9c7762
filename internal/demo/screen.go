package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"
)

// screen shows the cycles, one after the other.
type screen struct {
	Options

	with    *http.Client
	when    schedule
	clients []*client

	act   int   // whose caption was written last, counted from 1
	most  int64 // that was admitted in a cycle
	drawn int   // lines of the table on the terminal
}

func (s *screen) open(capacity int64) error {
	_, err := fmt.Fprintf(s.Out, `headgate demo: %d clients, one proxy, one service; nothing leaves this machine.
  service   %s, which can take %d requests in %s
  proxy     http://%s
  shares    headgate ctl shares --watch --admin %s
  join in   curl -i -H 'X-Client-Id: me' http://%s/
Sizes come from what was asked for in the cycle before. Loans are released as a
cycle passes, and of what is left something is kept for those who may come back.

`, len(s.clients), s.Upstream.URL(), capacity, s.when.cycle, s.Proxy, s.Admin, s.Proxy)
	return err
}

// When the proxy is asked, as parts of a cycle: late in it, when whoever comes has come, and
// early in the next, when it is counted.
const (
	late  = 0.9
	early = 0.05
)

// follow shows each cycle when it has ended, until ctx ends. A cycle about which the
// proxy does not answer in time is not shown.
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

// at waits for a part of a cycle and gives the shares of then, nil where they are not to
// be had. It reports false when ctx has ended.
func (s *screen) at(ctx context.Context, cycle int, part float64) (*shares, bool) {
	if !waitUntil(ctx, s.when.start(cycle).Add(time.Duration(part*float64(s.when.cycle)))) {
		return nil, false
	}
	now, err := ask(ctx, s.with, s.Admin)
	if err != nil {
		now = nil
	}
	return now, ctx.Err() == nil
}

// show writes the rows of a cycle.
func (s *screen) show(cycle int, rows []row) error {
	s.most = max(s.most, total(rows).admitted)
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

// draw writes a table over the one before: it goes up by its lines and clears
// what is below.
func (s *screen) draw(table string) error {
	up := ""
	if s.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn)
	}
	s.drawn = strings.Count(table, "\n")
	_, err := fmt.Fprint(s.Out, up, table)
	return err
}

// line is a cycle for a log.
func line(cycle int, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cycle %2d", cycle)
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s %d: %d of %d", r.client, r.size, r.admitted, r.asked)
	}
	return b.String() + "  (size: admitted of asked)"
}

// table is a cycle for people. In its bars each sign is a unit of a share.
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
	_ = w.Flush() // A strings.Builder takes everything.
	return b.String()
}

// mostBar bounds a bar, for whoever changes the capacity.
const mostBar = 60

func bar(r *row) string {
	var bar strings.Builder
	for _, part := range []struct {
		sign string
		n    int64
	}{{"#", r.own}, {"+", r.borrowed}, {"-", r.lent}} {
		bar.WriteString(strings.Repeat(part.sign, int(min(max(part.n, 0), mostBar-int64(bar.Len())))))
	}
	return bar.String()
}

// close gives the summary.
func (s *screen) close() error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\nIN ALL\tASKED\tADMITTED\tREFUSED\n")
	var all count
	for _, c := range s.clients {
		n := c.counted()
		all.sent, all.refused, all.failed = all.sent+n.sent, all.refused+n.refused, all.failed+n.failed
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", c.name, n.sent, n.admitted, n.refused)
	}
	_ = w.Flush() // A strings.Builder takes everything.
	if all.failed > 0 {
		fmt.Fprintf(&b, "%d requests failed.\n", all.failed)
	}
	fmt.Fprintf(&b, "\nThe clients asked %d times, the service served %d and never more than %d in a cycle, and %d were refused.\n",
		all.sent, s.Upstream.Served(), s.most, all.refused)
	_, err := fmt.Fprint(s.Out, b.String())
	return err
}
