package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/report"
)

// screen shows the counts of the clients.
type screen struct {
	Options

	began time.Time
	drawn int // lines of the table on the terminal
}

func (s *screen) open() error {
	_, err := fmt.Fprintf(s.Out, `headgate demo: %d clients, one proxy, one service; nothing leaves this machine.
  service   %s
  proxy     http://%s
  status    headgate ctl status --admin %s
  try it    curl -i -H 'X-Client-Id: me' http://%s/v1/product
  limits    %s; each client has its own, who gives no name shares one

`, len(s.Clients), s.Upstream.URL(), s.Proxy, s.Admin, s.Proxy, s.limits())
	return err
}

func (s *screen) limits() string {
	var parts []string
	for i := range s.Rules {
		parts = append(parts, s.Rules[i].Name+" "+report.LimitsOf(&s.Rules[i]))
	}
	return strings.Join(parts, "; ")
}

// refresh shows the counts again and again, until ctx ends.
func (s *screen) refresh(ctx context.Context) error {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := s.show(); err != nil {
			return err
		}
	}
}

func (s *screen) show() error {
	if s.Terminal {
		return s.draw(s.table())
	}
	_, err := fmt.Fprintln(s.Out, s.line())
	return err
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

// line is the counts for a log.
func (s *screen) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%3.0fs", time.Since(s.began).Seconds())
	for _, c := range s.Clients {
		n := c.Count()
		fmt.Fprintf(&b, "  %s %d/%d", c.Name, n.Admitted, n.Sent)
	}
	return b.String() + "  (admitted/sent)"
}

// table is the counts for people.
func (s *screen) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "CLIENT\tASKS FOR\tSENT\tADMITTED\tREFUSED\tWHY\n")
	for _, c := range s.Clients {
		n := c.Count()
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n", c.Name, c.Demand, n.Sent, n.Admitted, n.Refused, why(&n))
	}
	_ = w.Flush() // A strings.Builder takes everything.
	return b.String()
}

// why lists the policies that refused, the most frequent first.
func why(n *Count) string {
	policies := slices.SortedFunc(maps.Keys(n.Why), func(a, b string) int {
		if n.Why[a] != n.Why[b] {
			return n.Why[b] - n.Why[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, policy := range policies {
		parts = append(parts, fmt.Sprintf("%s %d", policy, n.Why[policy]))
	}
	if n.Failed > 0 {
		parts = append(parts, fmt.Sprintf("failed %d", n.Failed))
	}
	return strings.Join(parts, ", ")
}

// close shows the last counts.
func (s *screen) close() error {
	table := s.table()
	if s.Terminal {
		if err := s.draw(table); err != nil {
			return err
		}
		table = ""
	}
	var sent, refused int
	for _, c := range s.Clients {
		n := c.Count()
		sent, refused = sent+n.Sent, refused+n.Refused
	}
	_, err := fmt.Fprintf(s.Out, "%s\nIn %s the clients asked %d times, the service served %d, and %d were refused.\n",
		table, time.Since(s.began).Round(time.Second/10), sent, s.Upstream.Served(), refused)
	return err
}
