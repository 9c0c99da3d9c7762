package logs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// sampleLines bounds the lines by which a format is found.
const sampleLines = 100

// seen is what the first lines have.
type seen struct {
	resolution                             time.Duration
	duration, client, host, userIP, region bool
	lines                                  int
	parts                                  []bool
}

// detect chooses the form of a log by its first lines: the one that reads most of them, and the first of those that read as many.
func (r *Reader) detect(sample []byte) (*format, error) {
	var best *format
	most, known := -1, false
	for i := range formatsTable {
		f := &formatsTable[i]
		switch {
		case r.options.Format != "" && kindsTable[f.kind].Name != r.options.Format:
			continue
		case f.kind == kindJSON && len(r.options.Fields) == 0, f.kind == kindLighttpd && r.options.Format == "":
			continue
		}
		known = true
		r.format = f
		r.use(f)
		if n := r.reads(f, sample); n > most {
			best, most = f, n
		}
	}
	switch {
	case !known && r.options.Format == kindsTable[kindJSON].Name:
		return nil, fmt.Errorf("%s: the format json needs the names of the fields: write --field time=NAME --field method=NAME "+
			"--field path=NAME --field ip=NAME --field status=NAME", r.options.Name)
	case !known:
		return nil, fmt.Errorf("--format %q is unknown: write one of %s", r.options.Format, kindWords())
	case most <= 0 && r.missingTime() != "" && len(bytes.TrimSpace(sample)) > 0:
		return nil, fmt.Errorf("%s: --field time=%s: none of the first lines has the field %s: write the name of the field with the time",
			r.options.Name, r.missingTime(), r.missingTime())
	case r.options.Format == "" && most <= 0 && len(bytes.TrimSpace(sample)) > 0:
		return nil, fmt.Errorf("%s: the first lines are of no known format: name it with --format (%s), or the fields of a JSON log with "+
			"--field time=NAME", r.options.Name, kindWords())
	case most <= 0 && r.options.Format == "":
		return &formatsTable[len(formatsTable)-3], nil // An empty log has any format.
	}
	return best, nil
}

// missingTime is the field that --field time names, if no line of the sample has it, or "".
func (r *Reader) missingTime() string {
	for i, f := range r.options.Fields {
		if wordsTable[f.Name].slot == slotTime && !r.found[i] {
			return f.Path
		}
	}
	return ""
}

func kindWords() string {
	var words []string
	for i := range kindsTable {
		words = append(words, kindsTable[i].Name)
	}
	return strings.Join(words, ", ")
}

// reads counts the lines of a sample that have the form.
func (r *Reader) reads(f *format, sample []byte) int {
	var l Line
	n := 0
	r.lines(sample, func(line []byte) {
		for _, mark := range f.marks {
			if !bytes.Contains(line, []byte(mark)) {
				return
			}
		}
		if r.parse(line, false, &l); l.Skip == Request && isMethod(l.Method) || l.Skip != Request && l.Skip != Malformed {
			n++
		}
	})
	return n
}

// lines calls with the lines of a sample.
func (r *Reader) lines(sample []byte, with func(line []byte)) {
	for n := 0; len(sample) > 0 && n < sampleLines; n++ {
		var line []byte
		line, sample, _ = bytes.Cut(sample, []byte{'\n'})
		if line = bytes.TrimSuffix(line, []byte{'\r'}); len(line) > 0 {
			with(line)
		}
	}
}

// use prepares the reader for a form.
func (r *Reader) use(f *format) {
	parts := r.options.Parts
	r.refererPart, r.agentPart = slices.Index(parts, partReferer), slices.Index(parts, partAgent)
	r.forwardedPart, r.idPart = slices.Index(parts, partForwarded), slices.Index(parts, partID)
	r.fields, r.other = new(fieldSet), "not in the format "+kindsTable[f.kind].Name
	r.found = make([]bool, len(r.options.Fields))
	for i, given := range r.options.Fields { // The first field of a name counts: those of the command line are before those of a preset.
		added := wordsTable[given.Name]
		if added.slot == slotNone {
			if added = (field{slot: slotPart, part: slices.Index(parts, given.Name)}); added.part < 0 {
				r.found[i] = true
				continue // No rule reads the part.
			}
		}
		added.given = i + 1
		r.fields.add(given.Path, added)
	}
	if f.fields != nil {
		f.fields(r.fields, parts)
	}
	r.timeIsEnd = r.options.TimeIs == TimeIsEnd || r.options.TimeIs == TimeIsUsual && f.kind == kindNginx
	r.usual, r.cookies = make([]Value, len(parts)), nil
	for i, p := range parts {
		if f.headers && strings.HasPrefix(p, "header:") {
			r.usual[i].Form = Absent
		}
		if name, ok := strings.CutPrefix(p, "cookie:"); ok {
			r.cookies = append(r.cookies, cookiePart{name, i})
		}
	}
}

// look notes what the first lines have. A part that one of them has is absent on lines without it.
func (r *Reader) look(sample []byte) {
	r.seen.parts = make([]bool, len(r.options.Parts))
	var l Line
	r.lines(sample, func(line []byte) {
		if r.parse(line, false, &l); l.Skip != Request {
			return
		}
		s := &r.seen
		s.lines++
		s.resolution = max(s.resolution, l.Resolution)
		s.duration = s.duration || l.Duration >= 0
		s.client = s.client || len(l.Client) > 0
		s.host = s.host || len(l.Host) > 0
		s.userIP = s.userIP || len(l.UserIP) > 0
		s.region = s.region || len(l.Region) > 0
		for i := range l.Parts {
			s.parts[i] = s.parts[i] || l.Parts[i].Form != Unlogged
		}
	})
	for i, found := range r.seen.parts {
		if found {
			r.usual[i].Form = Absent
		}
	}
}

// Unlogged lists the key parts that none of the first lines has: those of Options.Parts, and ip, host, user_ip and region, which lines have
// as fields of their own. A log without a request lacks none.
func (r *Reader) Unlogged() []string {
	if r.seen.lines == 0 {
		return nil
	}
	var all []string
	for _, own := range [...]struct {
		name string
		has  bool
	}{{"ip", r.seen.client}, {"host", r.seen.host}, {"user_ip", r.seen.userIP}, {"region", r.seen.region}} {
		if !own.has {
			all = append(all, own.name)
		}
	}
	for i, found := range r.seen.parts {
		if p := r.options.Parts[i]; !found && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
