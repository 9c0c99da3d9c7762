package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/lab/output"
	"github.com/headgate/headgate/cmd/internal/lab/replay/tally"
)

// grouped writes a number with a comma after each three digits.
func grouped(n int64) string { return output.Count(n) }

func share(part, of int64) string { return output.Share(part, of) }

// section is a part of the report: a table, or a list.
type section struct {
	table *output.Table
	title string
	list  []string
	// bars is for a terminal only: a page has a picture.
	bars bool
}

// sections are the parts of the report in their order.
func (r *Report) sections() (all []section) {
	add := func(t *output.Table) {
		if t != nil && len(t.Rows) > 0 {
			all = append(all, section{table: t})
		}
	}
	add(r.filesTable())
	add(r.totalsTable())
	add(r.rulesTable())
	add(r.peaksTable())
	for i := range r.Rules {
		add(r.Rules[i].topTable())
	}
	if t := r.Timeline.table(); t != nil {
		all = append(all, section{table: t, bars: true})
	}
	add(r.Logged.table())
	add(r.Against.table(r))
	add(r.Against.keysTable(r))
	add(r.suggestionsTable())
	if r.MalformedCount > 0 {
		all = append(all, r.malformedLines())
	}
	if r.Against != nil && len(r.Against.LeftOut) > 0 {
		all = append(all, section{title: "Left out of " + r.Against.Name, list: r.Against.LeftOut})
	}
	if len(r.LeftOut) > 0 {
		all = append(all, section{title: "Left out", list: r.LeftOut})
	}
	return append(all, section{title: "What the log cannot tell, and what was assumed", list: r.Notes})
}

func (r *Report) title() string {
	return fmt.Sprintf("%s on %s requests, %s to %s", r.Config, grouped(r.Requests), cmp.Or(r.First, "-"), cmp.Or(r.Last, "-"))
}

const partialText = "PARTIAL: the replay was stopped before the end of the logs."

// WriteText writes the report as tables for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	if r.Partial {
		b.WriteString(partialText + "\n\n")
	}
	b.WriteString(terminal.Printable(r.title()) + "\n")
	for _, s := range r.sections() {
		b.WriteString("\n")
		if s.table != nil {
			s.table.Text(&b)
			continue
		}
		b.WriteString(terminal.Printable(s.title) + "\n")
		for _, line := range s.list {
			b.WriteString("- " + terminal.Printable(line) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WritePage writes the report as one HTML file without scripts and without references.
func (r *Report) WritePage(w io.Writer) error {
	p := output.NewPage(r.title())
	if r.Partial {
		p.Partial(partialText)
	}
	for _, s := range r.sections() {
		switch {
		case s.bars:
			p.Picture(r.Timeline.picture())
		case s.table != nil:
			p.Table(s.table)
		default:
			p.Heading(s.title)
			p.List(s.list)
		}
	}
	return p.Write(w)
}

func (r *Report) filesTable() *output.Table {
	t := &output.Table{Head: []string{"log", "format", "lines", "requests", "not requests", "time of arrival"}}
	var cut []string
	for i := range r.Files {
		f := &r.Files[i]
		t.Add(f.Name, cmp.Or(f.Format, "-"), grouped(f.Lines), grouped(f.Requests), skippedText(f.Skipped), f.Moment)
		if f.Cut != "" {
			cut = append(cut, f.Cut)
		}
	}
	t.Note = strings.Join(cut, "; ")
	return t
}

func skippedText(skipped map[string]int64) string {
	if len(skipped) == 0 {
		return "0"
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(skipped)) {
		all = append(all, grouped(skipped[kind])+" "+kind)
	}
	return strings.Join(all, ", ")
}

func (r *Report) totalsTable() *output.Table {
	t := &output.Table{Title: "Requests", Head: []string{"", "requests", "share"}}
	add := func(name string, n int64) { t.Add(name, grouped(n), share(n, r.Requests)) }
	add("passed", r.Passed)
	add("refused", r.Refused)
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		add("  "+reason, r.Reasons[reason])
	}
	for _, more := range [...]struct {
		name string
		n    int64
	}{
		{"refused by several rules", r.Several},
		{"passed after a wait", r.Waited},
		{"passed, degraded by on_exceed", r.Degraded},
		{"matched no rule", r.Unmatched},
		{"exempt", r.Exempt},
	} {
		if more.n > 0 {
			add(more.name, more.n)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(r.Invalid)) {
		add("answered with 400: "+why, r.Invalid[why])
	}
	t.Note = fmt.Sprintf("%s client addresses, of which %s (%s) are refused at least once%s", grouped(r.Clients.Keys),
		grouped(r.Clients.Refused), share(r.Clients.Refused, r.Clients.Keys), r.sampled())
	return t
}

// sampled marks figures by key that are those of a sample.
func (r *Report) sampled() string {
	if r.Sample > 1 {
		return fmt.Sprintf(" (estimated from one key in %d)", r.Sample)
	}
	return ""
}

func (r *Report) rulesTable() *output.Table {
	t := &output.Table{
		Title: "Rules" + r.sampled(),
		Head:  []string{"rule", "requests", "refused", "as the first", "share", "keys", "refused keys", "share"},
	}
	if r.Other != nil {
		t.Head = append(t.Head, "refused if "+r.Other.Within)
		t.Note = fmt.Sprintf("With the lines of a second %s, %s requests are refused; %s, %s.",
			r.Within, grouped(r.Refused), r.Other.Within, grouped(r.Other.Refused))
	}
	for i := range r.Rules {
		own := &r.Rules[i]
		name := own.Name
		if own.Mode != "" {
			name += " (" + own.Mode + ")"
		}
		cells := []string{
			name, grouped(own.Requests), grouped(own.Refused), grouped(own.First), share(own.First, r.Requests),
			grouped(own.Keys.Keys), grouped(own.Keys.Refused), share(own.Keys.Refused, own.Keys.Keys),
		}
		if r.Other != nil {
			cells = append(cells, grouped(r.Other.Rules[own.Name]))
		}
		t.Add(cells...)
	}
	return t
}

func (r *Report) peaksTable() *output.Table {
	t := &output.Table{
		Title: "Peaks of the keys: the most units in any window of the limit" + r.sampled(),
		Head:  []string{"rule", "limit", "algorithm", "50 %", "90 %", "99 %", "99.9 %", "most"},
	}
	for i := range r.Rules {
		for _, l := range r.Rules[i].Limits {
			t.Add(r.Rules[i].Name, l.Limit, l.Algorithm,
				peakText(l.P50), peakText(l.P90), peakText(l.P99), peakText(l.P999), peakText(l.Most))
		}
	}
	t.Note = "The windows of fixed_window are aligned. Keys with an override, and limits of a calendar, have no peaks: -."
	return t
}

// peakText writes a peak, or - if there is none.
func peakText(n int64) string {
	if n < 0 {
		return "-"
	}
	return grouped(n)
}

func (r *RuleReport) topTable() *output.Table {
	t := &output.Table{Title: "Top keys of " + r.Name, Head: []string{"key", "requests", "refused", "first refused"}}
	for _, l := range r.Limits {
		t.Head = append(t.Head, "peak "+l.Limit)
	}
	for _, k := range r.Top {
		cells := []string{k.Key, grouped(k.Requests), grouped(k.Refused), cmp.Or(k.First, "-")}
		for _, peak := range k.Peaks {
			cells = append(cells, peakText(peak))
		}
		t.Add(cells...)
	}
	return t
}

// timelineRows bounds the rows of a timeline.
const timelineRows = 24

// table has at most 24 steps, each with a bar.
func (l *TimelineReport) table() *output.Table {
	steps := len(l.Requests)
	if steps == 0 {
		return nil
	}
	per := (steps + timelineRows - 1) / timelineRows
	var rows []tally.Step
	most := int64(1)
	for from := 0; from < steps; from += per {
		var s tally.Step
		for i := from; i < min(steps, from+per); i++ {
			s.Requests += l.Requests[i]
			s.Refused += l.Refused[i]
		}
		rows = append(rows, s)
		most = max(most, s.Requests)
	}
	t := &output.Table{
		Title: fmt.Sprintf("Over time, in steps of %s: passed = and refused #", lengthText(time.Duration(per)*l.step)),
		Head:  []string{"from", "requests", "refused", "share", ""},
	}
	const width = 50
	for i, s := range rows {
		refused := int(s.Refused * width / most)
		bar := strings.Repeat("=", int(s.Requests*width/most)-refused) + strings.Repeat("#", refused)
		t.Add(timeText(l.start.Add(time.Duration(i*per)*l.step)), grouped(s.Requests), grouped(s.Refused), share(s.Refused, s.Requests),
			fmt.Sprintf("%-*s", width, bar))
	}
	return t
}

// lengthText writes a length without units that are zero: 3h30m for 3h30m0s.
func lengthText(d time.Duration) string {
	text := d.String()
	for _, zero := range [...]string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// picture draws the requests over the time.
func (l *TimelineReport) picture() *output.Picture {
	unit, name := time.Second, "seconds"
	for _, longer := range [...]struct {
		unit time.Duration
		name string
	}{{time.Minute, "minutes"}, {time.Hour, "hours"}, {24 * time.Hour, "days"}} {
		if time.Duration(len(l.Requests))*l.step > 3*longer.unit {
			unit, name = longer.unit, longer.name
		}
	}
	passed := output.Line{Name: "passed", Color: output.Blue, Steps: true}
	refused := output.Line{Name: "refused", Color: output.Orange, Steps: true}
	at := func(i int) float64 { return (time.Duration(i) * l.step).Seconds() / unit.Seconds() }
	add := func(i int, all, not int64) {
		passed.Points = append(passed.Points, output.Point{X: at(i), Y: float64(all - not)})
		refused.Points = append(refused.Points, output.Point{X: at(i), Y: float64(not)})
	}
	for i := range l.Requests {
		add(i, l.Requests[i], l.Refused[i])
	}
	if n := len(l.Requests); n > 0 {
		add(n, l.Requests[n-1], l.Refused[n-1])
	}
	return &output.Picture{Panels: []output.Panel{{
		Title: fmt.Sprintf("requests in each %s", lengthText(l.step)),
		X:     fmt.Sprintf("%s since %s", name, l.Start), To: at(len(l.Requests)),
		Lines: []output.Line{passed, refused},
	}}}
}

func (l *LoggedVerdicts) table() *output.Table {
	if l == nil {
		return nil
	}
	t := &output.Table{Title: "Verdicts in the log", Head: []string{"", "replay passes", "replay refuses"}}
	t.Add("log passes", grouped(l.BothPass), grouped(l.OnlyReplay))
	t.Add("log refuses", grouped(l.OnlyLog), grouped(l.BothRefuse))
	return t
}

func (c *Comparison) table(r *Report) *output.Table {
	if c == nil {
		return nil
	}
	t := &output.Table{Title: "Against " + c.Name, Head: []string{"", c.Name + " passes", c.Name + " refuses"}}
	t.Add(r.Config+" passes", grouped(c.BothPass), grouped(c.OnlySecond))
	t.Add(r.Config+" refuses", grouped(c.OnlyFirst), grouped(c.BothRefuse))
	t.Note = grouped(c.ChangedKeys) + " keys change"
	return t
}

func (c *Comparison) keysTable(r *Report) *output.Table {
	if c == nil {
		return nil
	}
	t := &output.Table{Title: "Keys that change", Head: []string{"rule and key", "requests", "refused only by"}}
	names := map[string]string{"first": r.Config, "second": c.Name}
	for _, k := range c.Keys {
		t.Add(k.Key, grouped(k.Requests), names[k.Refuses])
	}
	return t
}

func (r *Report) suggestionsTable() *output.Table {
	if len(r.Suggestions) == 0 {
		return nil
	}
	t := &output.Table{
		Title: fmt.Sprintf("Suggestions: the smallest limits, each alone, that refuse at most %g %%", r.Suggestions[0].Percent),
		Head: []string{
			"rule", "limit", "of the keys", "refused keys", "refused requests", "of the requests", "refused keys", "refused requests",
		},
	}
	var notes []string
	for i := range r.Suggestions {
		s := &r.Suggestions[i]
		cells := []string{s.Rule, cmp.Or(s.Limit, "-")}
		if s.LeftOut != "" {
			t.Add(append(cells, "none: "+s.LeftOut)...)
			continue
		}
		if len(notes) == 0 && (s.ForKeys != nil || s.ForRequests != nil) {
			notes = append(notes, "A replay of the whole log with the algorithm of the rule confirms each suggestion.")
		}
		if len(s.Without) > 0 {
			notes = append(notes, fmt.Sprintf("%s %s: without %s of the rule.", s.Rule, s.Limit, strings.Join(s.Without, ", ")))
		}
		for _, found := range [...]*Suggested{s.ForKeys, s.ForRequests} {
			if found != nil && found.Invalid != "" {
				note := fmt.Sprintf("%s %s is not valid as it is: %s.", s.Rule, found.Limit, found.Invalid)
				if !slices.Contains(notes, note) {
					notes = append(notes, note)
				}
			}
			if found == nil {
				cells = append(cells, "none found", "", "")
				continue
			}
			cells = append(cells, found.Limit, grouped(found.RefusedKeys)+", "+share(found.RefusedKeys, s.Keys),
				grouped(found.RefusedRequests)+", "+share(found.RefusedRequests, s.Requests))
		}
		t.Add(cells...)
	}
	t.Note = strings.Join(notes, " ")
	return t
}

func (r *Report) malformedLines() section {
	s := section{title: fmt.Sprintf("Malformed lines: %s, of which these are the first", grouped(r.MalformedCount))}
	for _, m := range r.Malformed {
		s.list = append(s.list, fmt.Sprintf("%s:%d: %s: %s", m.File, m.Number, m.Cause, m.Text))
	}
	return s
}
