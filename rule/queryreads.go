package rule

import (
	"slices"
	"strings"
)

// queryReads are the names of a query that rules read.
type queryReads struct {
	spelled map[string][]queryRead // by the form of spelling
	all     []queryRead            // up to fewQueries names, each of which is its own spelling; nil with others
	lengths uint64                 // a bit for the length of each key of spelled
	longest int                    // of the keys of spelled
}

// queryRead is one name.
type queryRead struct {
	number int // in Reads.Queries
	name   string
	spaces bool // A rule compares the value with a text that has a space or a plus sign.
}

// mostQueryHits bounds the names that rules read in one query.
const mostQueryHits = 64

// AddQuery adds a name of the query. texts are those with which rules compare the value.
func (r *Reads) AddQuery(name string, texts ...string) {
	spaces := slices.ContainsFunc(texts, func(text string) bool { return strings.ContainsAny(text, " +") })
	number := slices.Index(r.Queries, name)
	if number < 0 {
		number = len(r.Queries)
		r.Queries = append(r.Queries, name)
	}
	q := &r.queries
	if q.spelled == nil {
		q.spelled = map[string][]queryRead{}
	}
	form, _, _ := spelling(name, nil, len(name))
	key := string(form)
	all := q.spelled[key]
	if i := slices.IndexFunc(all, func(known queryRead) bool { return known.name == name }); i >= 0 {
		all[i].spaces = all[i].spaces || spaces
	} else {
		q.spelled[key] = append(all, queryRead{number, name, spaces})
	}
	q.listFew()
	q.lengths |= lengthBit(len(key))
	q.longest = max(q.longest, len(key))
}

// listFew lists the names if a search in a list is faster than in a map.
func (q *queryReads) listFew() {
	q.all = nil
	for form, all := range q.spelled {
		if len(q.all) == fewQueries || len(all) > 1 || all[0].name != form {
			q.all = nil
			return
		}
		q.all = append(q.all, all[0])
	}
}

func lengthBit(length int) uint64 { return 1 << min(length, 63) }

// QueryValues is the query of a request. After Reads.ReadQuery, it knows the values that rules read, so that a lookup of them does not
// scan the query again. It is a headgate.Values. The zero QueryValues is an empty query.
type QueryValues struct {
	query Query
	reads *Reads // nil before ReadQuery
	hits  []queryHit
}

// queryHit is a value that rules read.
type queryHit struct {
	read    *queryRead
	value   string // as it was sent
	escaped bool
}

// Reset sets the query. It keeps memory for the next ReadQuery.
func (v *QueryValues) Reset(raw string) {
	v.query = Query(raw)
	if v.reads != nil {
		clear(v.hits)
		v.reads, v.hits = nil, v.hits[:0]
	}
}

// Lookup implements headgate.Values, with the values of Query.Lookup.
func (v *QueryValues) Lookup(name string) (value string, found bool) {
	for i := range v.hits {
		switch h := &v.hits[i]; {
		case h.read.name != name:
		case h.escaped:
			return decodeQuery(h.value)
		default:
			return h.value, true
		}
	}
	if v.reads != nil && len(v.reads.Queries) <= fewQueries && slices.Contains(v.reads.Queries, name) {
		return "", false
	}
	return v.query.Lookup(name)
}

// fewQueries is a number of names up to which a search among them is faster than a scan of the query.
const fewQueries = 8

// UnclearQuery is ReadQuery for a query whose values are not looked up.
func (r *Reads) UnclearQuery(raw string) (name string, unclear bool) {
	v := QueryValues{query: Query(raw)}
	return r.ReadQuery(&v)
}

// ReadQuery finds a name that rules read and that services read differently in a query: one with two values, a value with a
// broken escape, or with a + that could be a space or a plus sign, a pair with a semicolon, which some services take for &, and a name in
// another spelling, as "FORMAT", "format[]" and "format%00". A front refuses such a request, because the service may read another value
// than the rules. Otherwise v has the values. The time is linear in the length of the query, and nothing is allocated but the first
// memory of v.
func (r *Reads) ReadQuery(v *QueryValues) (name string, unclear bool) {
	if r.queries.longest == 0 {
		return "", false
	}
	hits, raw := v.hits[:0], string(v.query)
	semicolons := strings.IndexByte(raw, ';') >= 0
	for raw != "" {
		pair, rest, several := raw, "", false
		if end := strings.IndexByte(raw, '&'); end >= 0 {
			pair, rest = raw[:end], raw[end+1:]
		}
		raw = rest
		if semicolons {
			pair, rest, several = strings.Cut(pair, ";")
		}
		hit, good := r.queries.read(pair)
		for several && rest != "" && hit.read == nil {
			pair, rest, _ = strings.Cut(rest, ";")
			hit, _ = r.queries.read(pair)
		}
		switch {
		case hit.read == nil:
		case several, !good, len(hits) == mostQueryHits,
			slices.ContainsFunc(hits, func(former queryHit) bool { return former.read.number == hit.read.number }):
			return hit.read.name, true
		default:
			hits = append(hits, hit)
		}
	}
	v.hits, v.reads = hits, r
	return "", false
}

// read finds the name of a pair among those that rules read. Its read is nil if it is none of them. good reports whether all services
// read the pair alike.
func (q *queryReads) read(pair string) (hit queryHit, good bool) {
	end := 0
	for end < len(pair) && isOwnSpelling(pair[end]) {
		end++
	}
	if end == len(pair) || pair[end] == '=' { // Nearly all names are their own spelling.
		if q.lengths&lengthBit(end) == 0 {
			return queryHit{}, true
		}
		name, value := pair[:end], pair[min(end+1, len(pair)):]
		for i := range q.all {
			if q.all[i].name == name {
				return q.all[i].hit(value)
			}
		}
		if q.all != nil {
			return queryHit{}, true
		}
		return hitOf(q.spelled[name], name, value)
	}
	name, value, _ := strings.Cut(pair, "=")
	var room [maxNameLength + 1]byte
	form, brackets, ended := spelling(name, room[:0], q.longest)
	if all := q.find(form); ended && len(all) > 0 {
		return hitOf(all, name, value)
	}
	for _, end := range brackets {
		if end > 0 && end <= len(form) {
			if all := q.find(form[:end]); len(all) > 0 {
				return queryHit{read: &all[0]}, false
			}
		}
	}
	return queryHit{}, true
}

// hitOf finds a name among those with its spelling.
func hitOf(all []queryRead, name, value string) (hit queryHit, good bool) {
	if len(all) == 0 {
		return queryHit{}, true
	}
	for i := range all {
		if decodesTo(name, all[i].name) {
			return all[i].hit(value)
		}
	}
	return queryHit{read: &all[0]}, false
}

// hit is the hit of a name with a value.
func (r *queryRead) hit(value string) (hit queryHit, good bool) {
	escaped := strings.IndexByte(value, '%') >= 0 || strings.IndexByte(value, '+') >= 0
	return queryHit{r, value, escaped}, !escaped || isClearValue(value, r.spaces)
}

// isOwnSpelling reports whether spelling keeps a byte of a name as it is.
func isOwnSpelling(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

func (q *queryReads) find(form []byte) []queryRead {
	if q.lengths&lengthBit(len(form)) == 0 {
		return nil
	}
	return q.spelled[string(form)]
}

// spelling appends the form that all spellings of a name have in common to form, up to one byte more than longest: services ignore
// case (ASP.NET), blanks in front, and what follows a zero byte, and read a dot and a blank as "_" (PHP). brackets are the positions of
// the first two [, behind which PHP, Rack and qs read an element of a list. ended reports whether the whole name is in form.
func spelling(name string, form []byte, longest int) (all []byte, brackets [2]int, ended bool) {
	found := 0
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && isEscaped(name[i:]):
			c = unescaped(name[i:])
			i += 2
		}
		switch {
		case c == 0:
			return form, brackets, true
		case c == ' ' && len(form) == 0:
			continue
		case c == ' ' || c == '.':
			c = '_'
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		case c == '[' && found < len(brackets):
			brackets[found] = len(form)
			found++
		}
		if len(form) > longest {
			return form, brackets, false
		}
		form = append(form, c)
	}
	return form, brackets, len(form) <= longest
}

// isClearValue reports whether all services decode a value alike. spaces says that a rule tells a space from a plus sign.
func isClearValue(value string, spaces bool) bool {
	for i := range len(value) {
		switch c := value[i]; {
		case c == '+' && spaces:
			return false
		case c != '%':
		case !isEscaped(value[i:]), unescaped(value[i:]) == 0:
			return false
		}
	}
	return true
}
