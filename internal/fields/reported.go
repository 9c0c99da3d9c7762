package fields

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
)

// Reported has the headers and trailers of an answer that stages read. The zero Reported reads
// none.
type Reported struct {
	facts  guard.Facts
	values map[string]string
}

// Report prepares a Reported for the stages of a request.
func Report(f guard.Facts) Reported { return Reported{facts: f} }

// Take notes the values in h, and removes those that are for the stages alone. Call it before the
// header is written, and again at the end of the answer, for trailers. Of a header and a trailer
// with one name, the trailer counts. Several lines of one name are one value, separated by commas.
func (r *Reported) Take(h Header) {
	for _, name := range r.facts.Answer {
		for _, spelling := range [...]string{name, inTrailer(name)} {
			if lines := h.Lines(spelling); len(lines) > 0 {
				if r.values == nil {
					r.values = make(map[string]string, len(r.facts.Answer))
				}
				r.values[name] = strings.Join(lines, ", ") // Two lines are one list: RFC 9110, section 5.3.
			}
		}
	}
	for _, name := range r.facts.Private {
		h.Delete(name)
		h.Delete(inTrailer(name))
	}
	if len(r.facts.Private) > 0 && len(h.Lines("Trailer")) > 0 {
		r.unannounce(h)
	}
}

// inTrailer returns the name under which handlers set a trailer. That of the throttle's field, which most answers are searched for, is
// not allocated.
func inTrailer(name string) string {
	const work = "Headgate-Work"
	if name == work {
		return http.TrailerPrefix + work
	}
	return http.TrailerPrefix + name
}

// unannounce removes the names of private fields from the announcement of trailers.
func (r *Reported) unannounce(h Header) {
	private := func(name string) bool {
		return slices.Contains(r.facts.Private, textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t")))
	}
	var kept []string
	for _, line := range h.Lines("Trailer") {
		names := slices.DeleteFunc(strings.Split(line, ","), private)
		if len(names) > 0 {
			kept = append(kept, strings.Trim(strings.Join(names, ","), " \t"))
		}
	}
	if len(kept) == 0 {
		h.Delete("Trailer")
		return
	}
	h.Set("Trailer", kept)
}

// Lookup is the lookup of a guard.Outcome. It is nil if stages read nothing.
func (r *Reported) Lookup() func(name string) (string, bool) {
	if len(r.facts.Answer) == 0 {
		return nil
	}
	values := r.values
	if values == nil {
		return unreported // The closure below would be allocated.
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func unreported(string) (string, bool) { return "", false }
