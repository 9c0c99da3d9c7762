package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/cmd/internal/lab/replay/order"
	"github.com/headgate/headgate/internal/config"
)

// UsageError is an error of the command line, of a configuration, or of what a log lacks: the exit status is 2.
type UsageError struct{ error }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.error }

// progressLines is the number of lines between two calls of Progress and two looks at the context.
const progressLines = 4096

// run is one pass over the logs.
type run struct {
	options *Options
	demands []*demand
	parts   []string
	logs    *merged
	window  *order.Window
	seen    seen
	hashes  map[string]bool // the parts of which a line has hashes
	// begin makes the trials when the first requests are known.
	begin func(*run) error
	begun bool
	// deliver gets the requests in order.
	deliver func(line *order.Line, r *record) error

	payload  []byte
	record   record
	line     order.Line
	facts    facts
	lastTime headgate.Instant
}

// facts are what a pass finds out about the logs, whatever the configuration.
type facts struct {
	requests            int64
	durations, verdicts int64 // requests with one
	whole               int64 // requests with whole seconds
	resolution          time.Duration
	long                int64 // requests longer than the window
	minutes             int64 // minutes with a request
	first, last         headgate.Instant
	malformed           []Malformed
	malformedCount      int64
	refusedInLog        int64
}

// Malformed is a malformed line.
type Malformed struct {
	File   string `json:"file"`
	Number int64  `json:"number"`
	Cause  string `json:"cause"`
	Text   string `json:"text"`
}

// newRun opens the logs for the configurations.
func newRun(o *Options, configs ...*config.Config) (*run, error) {
	r := &run{options: o, window: o.window(), seen: seen{}, hashes: map[string]bool{}}
	for _, c := range configs {
		d := demandOf(c)
		r.demands = append(r.demands, d)
		r.parts = append(r.parts, d.parts...)
	}
	slices.Sort(r.parts)
	r.parts = slices.Compact(r.parts)
	var err error
	r.logs, err = open(o, logged(r.parts))
	return r, err
}

// logged leaves out the parts for which a line has a field of its own.
func logged(parts []string) []string {
	return slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == partHost || p == partRegion || p == partUserIP })
}

// all reads the logs to their ends. It ends early with the error of ctx.
func (r *run) all(ctx context.Context) error {
	defer r.logs.close()
	var l logs.Line
	for {
		if r.logs.lines%progressLines == 0 {
			if err := ctx.Err(); err != nil {
				return errors.Join(err, r.end())
			}
			r.progress()
		}
		f, err := r.logs.next(&l)
		if errors.Is(err, io.EOF) {
			return r.end()
		}
		if l.Skip != logs.Request {
			r.skip(f, &l)
			continue
		}
		r.logs.seen(f, &l)
		r.add(&l)
		if !r.begun && r.facts.requests < probed {
			continue
		}
		if err := r.drain(); err != nil {
			return err
		}
	}
}

// add puts a request into the window.
func (r *run) add(l *logs.Line) {
	f := &r.facts
	f.requests++
	whole := l.Resolution >= time.Second
	if whole {
		f.whole++
	}
	f.resolution = max(f.resolution, l.Resolution)
	if l.Duration >= 0 {
		f.durations++
		if l.Duration > cmp.Or(r.options.Reorder, DefaultReorder) {
			f.long++
		}
	}
	if len(l.Verdict) > 0 {
		f.verdicts++
		if string(l.Verdict) == headgate.Deny.String() {
			f.refusedInLog++
		}
	}
	if !r.begun {
		r.look(l)
	}
	r.payload = appendRecord(r.payload[:0], l)
	r.window.Add(l.Arrival, whole, r.payload)
	r.window.Advance(r.logs.high())
}

// look notes what one of the first lines says.
func (r *run) look(l *logs.Line) {
	for name, text := range map[string][]byte{partHost: l.Host, partUserIP: l.UserIP, partRegion: l.Region, partIP: l.Client} {
		if len(text) > 0 {
			r.seen[name]++
		}
	}
	for i, name := range logged(r.parts) {
		if l.Parts[i].Form != logs.Unlogged {
			r.seen[name]++
		}
		if l.Parts[i].Form == logs.Hashed {
			r.hashes[name] = true
		}
	}
}

// skip counts a line that is no request.
func (r *run) skip(f *file, l *logs.Line) {
	f.skipped[l.Skip]++
	if l.Skip != logs.Malformed {
		return
	}
	r.facts.malformedCount++
	if len(r.facts.malformed) < maxMalformed {
		const shown = 200
		text := string(l.Raw[:min(len(l.Raw), shown)])
		r.facts.malformed = append(r.facts.malformed, Malformed{f.Name, l.Number, l.Problem, text})
	}
}

// drain decides the requests whose turn has come.
func (r *run) drain() error {
	if !r.begun {
		r.begun = true
		if err := errors.Join(r.missingFields()...); err != nil {
			return UsageError{fmt.Errorf("replay: %w", err)}
		}
		if err := r.begin(r); err != nil {
			return err
		}
	}
	for r.window.Next(&r.line) {
		minute := r.line.Spread / headgate.Instant(time.Minute)
		if r.facts.minutes == 0 || minute != r.lastTime/headgate.Instant(time.Minute) {
			r.facts.minutes++
		}
		if r.facts.first == 0 {
			r.facts.first = r.line.Spread
		}
		r.lastTime, r.facts.last = r.line.Spread, r.line.Spread
		r.record.unpack(r.line.Payload)
		if err := r.deliver(&r.line, &r.record); err != nil {
			return err
		}
	}
	return nil
}

// missingFields names the fields of the command line that no line of any log has.
func (r *run) missingFields() (errs []error) {
	for i, f := range r.options.Logs.Fields {
		found := slices.ContainsFunc(r.logs.files, func(own *file) bool { return own.reader != nil && own.reader.Found(i) })
		if !found && r.facts.requests > 0 {
			errs = append(errs, fmt.Errorf("--field %s=%s: no line of the log has the field %s: write a name that the lines have; a text "+
				"format has only names that are written as name=value", f.Name, f.Path, f.Path))
		}
	}
	return errs
}

// end decides what is left in the window.
func (r *run) end() error {
	r.window.Close()
	err := r.drain()
	r.progress()
	return err
}

func (r *run) progress() {
	if r.options.Progress == nil {
		return
	}
	read, size := r.logs.read()
	r.options.Progress(Progress{Read: read, Size: size, Lines: r.logs.lines})
}

// engineOptions are those of the engine of a configuration. The first line that waits is not known to be the first: the window is
// before it.
func (r *run) engineOptions(first headgate.Instant) engine.Options {
	return engine.Options{Start: first, Seed: 1, MaxMemory: r.options.MaxMemory, WithoutDurations: r.facts.durations == 0}
}

// runnable returns the configuration without what the logs cannot decide. Without SkipUnknown, a part that no line has is an error.
func (r *run) runnable(n int, c *config.Config, name string) (own *config.Config, leftOut []string, err error) {
	missing := r.demands[n].lacking(r.seen)
	if len(missing) > 0 && !r.options.SkipUnknown && r.facts.requests > 0 {
		return nil, nil, UsageError{r.lacks(missing, c, name)}
	}
	if r.facts.requests == 0 {
		missing = nil
	}
	h := &hashing{parts: r.hashes}
	if r.options.Secret != nil {
		h.hasher = logs.NewHasher(r.options.Secret)
	}
	own, leftOut = r.demands[n].without(h.config(c), missing)
	return own, append(leftOut, h.lost...), nil
}

// lacks says which parts the logs lack, and how to log them.
func (r *run) lacks(missing []want, c *config.Config, name string) error {
	var errs []error
	for i, w := range missing {
		err := fmt.Errorf("%s: %s reads %s, which no line of the log has", name, w.ownerOf(c), w.part)
		if !slices.ContainsFunc(missing[:i], func(before want) bool { return before.part == w.part }) {
			err = fmt.Errorf("%w: %s", err, r.howToLog(w.part))
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("replay: %w\n--skip-unknown leaves these rules out", errors.Join(errs...))
}

// howToLog is the setting of the server that logs a part.
func (r *run) howToLog(part string) string {
	for _, f := range r.logs.files {
		if f.reader != nil {
			return logs.HowToLog(f.reader.Kind().Name, part)
		}
	}
	return "log " + part
}
