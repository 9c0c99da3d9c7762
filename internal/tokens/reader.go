package tokens

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate/internal/inflate"
	"github.com/headgate/headgate/internal/usage"
)

// maxHeaders bounds the headers and trailers that the rules of a configuration read.
const maxHeaders = 12

// Reader has what all rules of a configuration read of bodies. A Reader is immutable and safe for concurrent use.
type Reader struct {
	plans   []plan
	answers *usage.Program
	// slots has, for each API, the field of each role; -1 for none.
	slots [Cohere + 1][roles]int8
	// headers are the names of headers. apiHeaders has, for each API, the index of the first of its headers; -1 for none.
	headers          []string
	apiHeaders       [Cohere + 1]int8
	model, end, text int8 // fields of answers; -1 for none
	requests         *usage.Program
	requestNames     []string
	inflaters        *inflate.Pool
}

// plan is what a Settle reads: fields of the answer, or headers.
type plan struct {
	settle *Settle
	// indices are those of the fields or headers of a Settle without API, in its order.
	indices []int8
}

// NewReader compiles what rules read: the places that settles name, and the paths of requestFields in the bodies of requests.
func NewReader(settles []*Settle, requestFields []string) (*Reader, error) {
	r := &Reader{model: -1, end: -1, text: -1, inflaters: &inflate.Pool{}, requestNames: requestFields}
	for a := range r.slots {
		r.apiHeaders[a] = -1
		for role := range r.slots[a] {
			r.slots[a][role] = -1
		}
	}
	var fields []usage.Field
	fields = r.addAPIs(fields, settles)
	for _, s := range settles {
		fields = r.addSettle(fields, s)
	}
	if len(r.headers) > maxHeaders {
		return nil, fmt.Errorf("all settings named settle read %d headers: at most %d can be read", len(r.headers), maxHeaders)
	}
	var err error
	if r.answers, err = usage.Compile(fields); err != nil {
		return nil, fmt.Errorf("all settings named settle: %w", err)
	}
	if r.requests, err = compileRequests(requestFields); err != nil {
		return nil, fmt.Errorf("fields of request bodies: %w", err)
	}
	return r, nil
}

// addAPIs adds the fields of all APIs that settles name.
func (r *Reader) addAPIs(fields []usage.Field, settles []*Settle) []usage.Field {
	var apis []API
	for a := OpenAI; a <= Cohere; a++ {
		if slices.ContainsFunc(settles, func(s *Settle) bool { return s.API == a || s.API == Auto }) {
			apis = append(apis, a)
		}
	}
	if len(apis) == 0 {
		return fields
	}
	for _, a := range apis {
		for _, p := range places(a) {
			r.slots[a][p.role] = int8(len(fields))
			fields = append(fields, usage.Field{Kind: usage.Max, Paths: p.paths})
		}
		if names := headersOf(a); names != nil {
			r.apiHeaders[a] = int8(len(r.headers))
			r.headers = append(r.headers, names...)
		}
	}
	r.model = int8(len(fields))
	r.end, r.text = r.model+1, r.model+2
	return append(fields, modelField(), endField(), textField(apis))
}

// addSettle adds the fields and headers that a Settle names.
func (r *Reader) addSettle(fields []usage.Field, s *Settle) []usage.Field {
	p := plan{settle: s}
	for _, f := range s.JSON {
		kind := [...]usage.Kind{Max: usage.Max, Last: usage.Last, Sum: usage.Sum}[s.Merge]
		i := slices.IndexFunc(fields, func(g usage.Field) bool { return g.Kind == kind && g.Fraction && slices.Equal(g.Paths, f.Paths) })
		if i < 0 {
			i = len(fields)
			fields = append(fields, usage.Field{Kind: kind, Fraction: true, Paths: f.Paths})
		}
		p.indices = append(p.indices, int8(min(i, usage.MaxFields)))
	}
	for _, h := range s.Headers {
		i := slices.Index(r.headers, h.Name)
		if i < 0 {
			i = len(r.headers)
			r.headers = append(r.headers, h.Name)
		}
		p.indices = append(p.indices, int8(min(i, maxHeaders)))
	}
	r.plans = append(r.plans, p)
	return fields
}

// plan gives the plan of a Settle; nil if it belongs to another Reader.
func (r *Reader) plan(s *Settle) *plan {
	for i := range r.plans {
		if r.plans[i].settle == s {
			return &r.plans[i]
		}
	}
	return nil
}

// ReadsRequests reports whether a rule reads fields of request bodies, beside what estimates need.
func (r *Reader) ReadsRequests() bool { return len(r.requestNames) > 0 }

// Headers lists the headers and trailers that Answer.Header reads, in canonical spelling. The caller must not change the list.
func (r *Reader) Headers() []string { return r.headers }
