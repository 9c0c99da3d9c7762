package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/cmd/internal/lab/output"
)

// Document is the result of headgate simulate --json: one of its fields.
type Document struct {
	Comparison *Compared `help:"With --limit: what each algorithm did." json:"comparison,omitempty"`
	Run        *Played   `help:"With --config: what the configuration did." json:"run,omitempty"`
}

// partialText stands above the result of a run that was interrupted.
const partialText = "PARTIAL: the run was interrupted. The figures are those until then."

func nameOfRow(algorithm string, subWindows int64) string {
	if subWindows == 0 {
		return algorithm
	}
	return algorithm + " N=" + strconv.FormatInt(subWindows, 10)
}

// tables returns the tables of a comparison.
func (c *Compared) tables() []*output.Table {
	verdicts := &output.Table{
		Head: []string{
			"ALGORITHM", "REQUESTS", "ADMITTED", ofExact, "FALSE ALLOWS", "FALSE DENIES", "WORST EXCESS", "BYTES PER KEY",
		},
		Note: "FALSE ALLOWS and FALSE DENIES compare each decision with the exact log of what the same run admitted.\n" +
			"WORST EXCESS is the most units above the limit in any period (t-W, t].",
	}
	measured := slices.ContainsFunc(c.Results, func(r *Result) bool { return r.NanosecondsPerDecision > 0 })
	if measured {
		verdicts.Head = append(verdicts.Head, "NS PER DECISION")
	}
	if c.Partial {
		verdicts.Head = slices.Insert(verdicts.Head, 1, "REACHED")
	}
	for _, r := range c.Results {
		row := []string{
			nameOfRow(r.Algorithm, r.SubWindows), output.Count(r.Requests), output.Count(r.Admitted), output.Share(r.Admitted, r.OfLog),
			output.Count(r.FalseAllows), output.Count(r.FalseDenies), output.Count(max(r.WorstExcess, 0)), output.Count(r.KeyBytes),
		}
		if measured {
			row = append(row, fmt.Sprintf("%.0f", r.NanosecondsPerDecision))
		}
		if c.Partial {
			c.hideUnplayed(r, row)
			row = slices.Insert(row, 1, seconds(r.Reached))
		}
		verdicts.Add(row...)
	}
	all := []*output.Table{verdicts}
	if len(c.Estimates) > 0 {
		errors := &output.Table{
			Title: "Error of the estimate", Head: []string{"ALGORITHM", "MEAN", "P99"},
			Note: "|estimate - exact| / exact at each arrival, the arrival included, when nothing is refused.",
		}
		for _, e := range c.Estimates {
			if !e.played {
				errors.Add(nameOfRow(e.Algorithm, e.SubWindows), unplayed, unplayed)
				continue
			}
			errors.Add(nameOfRow(e.Algorithm, e.SubWindows), output.Percent(e.Mean), output.Percent(e.P99))
		}
		all = append(all, errors)
	}
	return all
}

// unplayed stands for a figure of a run that an interruption left out.
const unplayed = "-"

// hideUnplayed removes the figures of a run that did not begin, and the share of the exact log if the run was shorter than the whole.
func (c *Compared) hideUnplayed(r *Result, row []string) {
	if r.Reached < c.Seconds {
		row[3] = unplayed
	}
	for i := 1; r.Requests == 0 && i < len(row); i++ {
		row[i] = unplayed
	}
}

// promise says in words whether the promise of token_bucket held; "" without token_bucket.
func (c *Compared) promise() string {
	for _, r := range c.Results {
		switch {
		case r.Promise == nil || r.Requests == 0:
		case r.Promise.Held:
			return "token_bucket kept its promise: at most Burst + rate x T units in any interval T."
		default:
			return fmt.Sprintf("token_bucket broke its promise by %.3f units: report this as a fault.", r.Promise.MostAbove)
		}
	}
	return ""
}

// heading says what was compared.
func (c *Compared) heading() string {
	return fmt.Sprintf("%s with %s traffic of %s on %s keys, %s s of virtual time, seed %d",
		c.Limit, c.Traffic, c.Rate, output.Count(c.Keys), strconv.FormatFloat(c.Seconds, 'f', -1, 64), c.Seed)
}

// Text writes the tables for people.
func (c *Compared) Text(b *strings.Builder) {
	if c.Partial {
		b.WriteString(partialText + "\n")
	}
	b.WriteString(c.heading() + "\n\n")
	for _, t := range c.tables() {
		t.Text(b)
		b.WriteString("\n")
	}
	if text := c.promise(); text != "" {
		b.WriteString(text + "\n")
	}
}

// Page makes the page of a comparison.
func (c *Compared) Page(command string) *output.Page {
	p := output.NewPage("headgate simulate: " + c.Limit)
	if c.Partial {
		p.Partial(partialText)
	}
	p.Source(command)
	p.Text(c.heading())
	for _, t := range c.tables() {
		p.Table(t)
	}
	if text := c.promise(); text != "" {
		p.Text(text)
	}
	for _, s := range c.Pictures() {
		p.Picture(&s)
	}
	return p
}

// Pictures draws the exact window, in grey, against the estimates: fixed_window, then the least N, and then the next two.
func (c *Compared) Pictures() (all []output.Picture) {
	names := make([]string, 0, len(c.Estimates))
	for _, e := range c.Estimates {
		names = append(names, nameOfRow(e.Algorithm, e.SubWindows))
	}
	for len(names) > 0 && len(all) < 3 {
		n := 1
		if len(all) == 2 || len(all) == 1 && !strings.Contains(names[0], "N=1") {
			n = min(2, len(names))
		}
		all = append(all, c.picture(names[:n]))
		names = names[n:]
	}
	return all
}

// picture draws some estimates: the count over time, and the error below.
func (c *Compared) picture(names []string) output.Picture {
	first := c.curves[names[0]]
	from, until := first.from.Sub(first.start).Seconds(), first.until.Sub(first.start).Seconds()
	counts := output.Panel{
		Title: "Count of the last period", X: "seconds", Y: "requests", From: from, To: until, Height: 200,
		Lines: []output.Line{{Name: "exact", Color: output.Grey, Points: first.exact}},
	}
	errors := output.Panel{
		Title: "Error of the estimate", X: "seconds", Y: "percent", From: from, To: until, Low: -100, High: 100, Height: 110,
	}
	colors := []string{output.Orange, output.Blue}
	for i, name := range names {
		counts.Lines = append(counts.Lines, output.Line{Name: name, Color: colors[i%2], Points: c.curves[name].estimate})
		errors.Lines = append(errors.Lines, output.Line{Name: name, Color: colors[i%2], Points: c.curves[name].errors()})
	}
	return output.Picture{
		Heading: []string{
			fmt.Sprintf("%s, %s traffic, seed %d: the exact count and %s", c.Limit, c.Traffic, c.Seed, strings.Join(names, " and ")),
		},
		Panels: []output.Panel{counts, errors},
	}
}

// tables returns the tables of a run.
func (p *Played) tables() []*output.Table {
	groups := &output.Table{Head: []string{"GROUP", "REQUESTS", "ADMITTED", "SHARE", "REFUSED", "WAITED", "MEAN WAIT", "LONGEST WAIT"}}
	for _, g := range p.Groups {
		groups.Add(
			g.Name, output.Count(g.Requests), output.Count(g.Admitted), output.Share(g.Admitted, g.Requests), output.Count(g.Refused),
			output.Count(g.Waited), seconds(g.MeanWait), seconds(g.MostWait),
		)
	}
	refusals := &output.Table{Title: "Refusals", Head: []string{"BY", "REASON", "COUNT"}}
	for _, r := range p.Refusals {
		refusals.Add(r.By, r.Reason, output.Count(r.Count))
	}
	refusals.Note = "Of several rules that refuse a request, the first in the file counts."
	spared := &output.Table{
		Title: "Requests that passed, and would have been refused", Head: []string{"BY", "REASON", "COUNT"},
		Note: "Rules in shadow refuse nothing. Degraded requests pass with less.",
	}
	for _, r := range p.Spared {
		spared.Add(r.By, r.Reason, output.Count(r.Count))
	}
	all := []*output.Table{groups}
	if len(p.Refusals) > 0 {
		all = append(all, refusals)
	}
	if len(p.Spared) > 0 {
		all = append(all, spared)
	}
	return all
}

// partial says how far the run came.
func (p *Played) partial() string {
	return partialText + " It reached " + strconv.FormatFloat(p.Reached, 'f', 3, 64) + " s of virtual time."
}

// anonymous says that fair share knew no client.
func (p *Played) anonymous() string {
	requests := int64(0)
	for _, g := range p.Groups {
		requests += g.Requests
	}
	for _, r := range p.Refusals {
		if r.Reason == headgate.AnonymousClient.String() && r.Count == requests {
			return "Every request was refused because fair_share.client found no client in it: write a scenario whose groups have what " +
				"it reads, such as headers: {X-Client-Id: \"{key}\"}."
		}
	}
	return ""
}

func seconds(s float64) string { return fmt.Sprintf("%.3f s", s) }

// Text writes the tables for people.
func (p *Played) Text(b *strings.Builder) {
	if p.Partial {
		b.WriteString(p.partial() + "\n")
	}
	fmt.Fprintf(b, "%s s of virtual time, seed %d\n\n", strconv.FormatFloat(p.Seconds, 'f', -1, 64), p.Seed)
	for _, t := range p.tables() {
		t.Text(b)
		b.WriteString("\n")
	}
	if text := p.anonymous(); text != "" {
		b.WriteString(text + "\n")
	}
	if p.NanosecondsPerDecision > 0 {
		fmt.Fprintf(b, "%.0f ns per decision\n", p.NanosecondsPerDecision)
	}
	if p.Evictions > 0 {
		fmt.Fprintf(b, "%s counters were evicted\n", output.Count(p.Evictions))
	}
	if len(p.LeftOut) > 0 {
		b.WriteString("Left out:\n" + engine.Text(p.LeftOut, "  "))
	}
}

// Page makes the page of a run.
func (p *Played) Page(command string) *output.Page {
	page := output.NewPage("headgate simulate")
	if p.Partial {
		page.Partial(p.partial())
	}
	page.Source(command)
	for _, t := range p.tables() {
		page.Table(t)
	}
	if text := p.anonymous(); text != "" {
		page.Text(text)
	}
	page.Picture(p.picture())
	if len(p.LeftOut) > 0 {
		page.Heading("Left out")
		page.List(p.LeftOut)
	}
	return page
}

// picture draws the timeline.
func (p *Played) picture() *output.Picture {
	part := p.Seconds / float64(len(p.Timeline))
	var requests, admitted []output.Point
	for _, m := range p.Timeline {
		requests = append(requests, output.Point{X: m.Second, Y: float64(m.Requests) / part})
		admitted = append(admitted, output.Point{X: m.Second, Y: float64(m.Admitted) / part})
	}
	return &output.Picture{Panels: []output.Panel{{
		Title: "Requests a second", X: "seconds", Y: "requests a second", To: p.Seconds, Height: 220,
		Lines: []output.Line{
			{Name: "arrived", Color: output.Grey, Points: requests, Steps: true},
			{Name: "admitted", Color: output.Blue, Points: admitted, Steps: true},
		},
	}}}
}
