package rule

import (
	"slices"
	"strings"
)

// queryReads are the names of a query that rules read.
type queryReads struct {
	spelled map[string][]queryRead // by the form of spelling
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
		return
	}
	q.spelled[key] = append(all, queryRead{number, name, spaces})
	q.lengths |= lengthBit(len(key))
	q.longest = max(q.longest, len(key))
}

func lengthBit(length int) uint64 { return 1 << min(length, 63) }

// UnclearQuery finds a name that rules read and that services read differently in a query: one with two values, a value with a
// broken escape, or with a + that could be a space or a plus sign, a pair with a semicolon, which some services take for &, and a name in
// another spelling, as "FORMAT", "format[]" and "format%00". A front refuses such a request, because the service may read another value
// than the rules. The time is linear in the length of the query, and nothing is allocated.
func (r *Reads) UnclearQuery(raw string) (name string, unclear bool) {
	if r.queries.longest == 0 {
		return "", false
	}
	var hits [mostQueryHits]int
	n := 0
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		first, rest, several := strings.Cut(pair, ";")
		hit, good := r.queries.read(first)
		if several && hit == nil {
			for rest != "" && hit == nil {
				first, rest, _ = strings.Cut(rest, ";")
				hit, _ = r.queries.read(first)
			}
		}
		switch {
		case hit == nil:
		case several, !good, n == mostQueryHits, slices.Contains(hits[:n], hit.number):
			return hit.name, true
		default:
			hits[n] = hit.number
			n++
		}
	}
	return "", false
}

// read finds the name of a pair among those that rules read; nil if it is none of them. good reports whether all services read the
// pair alike.
func (q *queryReads) read(pair string) (hit *queryRead, good bool) {
	name, value, _ := strings.Cut(pair, "=")
	if name == "" {
		return nil, true
	}
	var room [maxNameLength + 1]byte
	form, brackets, ended := spelling(name, room[:0], q.longest)
	if all := q.find(form); ended && len(all) > 0 {
		for i := range all {
			if decodesTo(name, all[i].name) {
				return &all[i], isClearValue(value, all[i].spaces)
			}
		}
		return &all[0], false
	}
	for _, end := range brackets {
		if end > 0 && end <= len(form) {
			if all := q.find(form[:end]); len(all) > 0 {
				return &all[0], false
			}
		}
	}
	return nil, true
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
