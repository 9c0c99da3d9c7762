package replay

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

// notes say what a log cannot tell, and what was assumed.
func (p *replay) notes(r *Report) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	f := &p.run.facts
	if f.requests == 0 {
		note("The logs have no request.")
		return notes
	}
	note("Refused clients are replayed as they were logged: the log cannot tell when they would have come back.")
	note("All counters start empty: until a window has passed, a limit refuses less than it would.")
	p.windowNotes(r, note)
	if r.SpanMinutes > 1 && 2*r.ActiveMinutes < r.SpanMinutes {
		note("Only %s of %s minutes have lines. A log with gaps flatters fixed_window and other aligned windows: use a log of all "+
			"requests.", grouped(r.ActiveMinutes), grouped(r.SpanMinutes))
	}
	if f.durations == 0 {
		note("No line has a duration: throttle and in_flight are left out, and requests end when they arrive.")
	} else if f.durations < f.requests {
		note("%s of %s requests have no duration, and end when they arrive.", grouped(f.requests-f.durations), grouped(f.requests))
	}
	if f.refusedInLog > 0 {
		note("%s requests were refused when the log was written: their durations and statuses are those of the refusals.",
			grouped(f.refusedInLog))
	}
	p.orderNotes(r, note)
	if r.Sample > 1 {
		note("Figures by key are those of a sample of one in %d keys, because the statistics would take more than %d MiB. Decisions are "+
			"those of all keys.", r.Sample, keyMiB)
	}
	if r.Evictions > 0 {
		note("%d counters were evicted because max_memory was full: limits refuse less than they would with more memory.", r.Evictions)
	}
	p.formatNotes(note)
	return notes
}

const keyMiB = 96

// windowNotes are about limits whose windows do not fit the log.
func (p *replay) windowNotes(r *Report, note func(string, ...any)) {
	f := &p.run.facts
	for i := range r.Rules {
		for _, l := range r.Rules[i].Limits {
			if l.Longer {
				note("Rule %s: the window of %s is longer than the log, so its refusals are too few.", r.Rules[i].Name, l.Limit)
			}
			if l.TooFine {
				note("Rule %s: the limit %s is beyond the resolution of the log, which is %s.", r.Rules[i].Name, l.Limit, f.resolution)
			}
		}
	}
	if f.whole > 0 && p.twin != nil {
		note("The log has whole seconds. The lines of a second are %s; the other count is shown beside.",
			withinTextsTable[p.options.Within])
	}
	for i := range p.first.config.Rules {
		if len(p.first.config.Rules[i].Count) > 0 || p.first.config.Rules[i].BansAnswers() {
			note("Rule %s counts answers by the statuses in the log. Some servers log 200 for requests that their clients aborted.",
				p.first.config.Rules[i].Name)
		}
	}
	if p.first.config.Rules != nil && p.first.settles {
		note("settle uses the cost in the log, and the estimate where a line has none.")
	}
}

// withinTextsTable says where the lines of a second are.
var withinTextsTable = [...]string{"spread over it in their order", "together at its beginning"}

// orderNotes are about lines out of order.
func (p *replay) orderNotes(r *Report, note func(string, ...any)) {
	window := time.Duration(r.Order.WindowSeconds * float64(time.Second))
	if r.Order.Long > 0 {
		note("%s requests lasted longer than the window of %s: their lines came too late for their arrivals.",
			grouped(r.Order.Long), window)
	}
	if r.Order.Late > 0 {
		note("%s lines were more than %s back, and were taken at the edge of the window: a longer --reorder puts them in order.",
			grouped(r.Order.Late), window)
	}
	if r.Order.Forced > 0 {
		note("%s lines left the window early, because more than a million lines or 96 MiB waited: a shorter --reorder holds fewer.",
			grouped(r.Order.Forced))
	}
	for i := range r.Files {
		if back := time.Duration(r.Files[i].Back * float64(time.Second)); back > time.Minute {
			note("%s goes back by %s at line %d. Servers that buffer their log without flush do so: set flush=, or widen --reorder.",
				r.Files[i].Name, back.Round(time.Second), r.Files[i].BackLine)
		}
	}
}

// formatNotes say what the logs of each server hide.
func (p *replay) formatNotes(note func(string, ...any)) {
	known := map[string]bool{}
	for _, f := range p.run.logs.files {
		if f.reader == nil || known[f.reader.Kind().Name] {
			continue
		}
		kind := f.reader.Kind()
		known[kind.Name] = true
		if kind.Moment == logs.Unknown && !f.reader.EndIsTime() {
			note("%s: the time of a line is taken as the arrival of the request. If it is the end of the answer, set --time-is end.",
				kind.Name)
		}
		for _, text := range kind.Hides {
			note("%s: %s", kind.Name, text)
		}
	}
}
