package rule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkHeaders checks the names in sorted order, so that errors have a fixed order.
func (c *checker) checkHeaders(match string, headers map[string]string) {
	spelled := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		field := match + ".headers." + name
		canonical := canonicalHeader(name)
		if other, twice := spelled[canonical]; twice {
			c.note(field, fault{fmt.Sprintf("duplicates %q", other), "remove one of them"})
		}
		spelled[canonical] = name
		p, f := compileHeader(canonical, headers[name])
		c.notePattern(field, p, f)
	}
}

func compileHeader(name, value string) (pattern, fault) {
	if f := checkHeader(name, value); f != (fault{}) {
		return pattern{}, f
	}
	return compileValue(value)
}

func checkHeader(name, value string) fault {
	switch {
	case name == "" || faultyTokenByte(name) >= 0:
		return fault{"has an invalid header name", "write only letters, digits, - and _, like X-Tenant"}
	case name == "Host":
		return fault{"is never present", "use match.hosts"}
	case value == "":
		return fault{"has no value", `write the value, or "*" for any`}
	case !isHeaderValue(value):
		return fault{
			"has the value " + quote(value) + ", which is not valid in a header",
			"remove line breaks and the space around the value",
		}
	}
	if f := namePatternFault(name); f != (fault{}) {
		f.problem = "header " + f.problem
		return f
	}
	return fault{}
}

// compileValue compiles the value of a header, a query or a descriptor. A value that begins with a slash has the segments of a
// path, and every other value is one segment.
func compileValue(text string) (pattern, fault) {
	literal, marked := cutLiteral(text)
	switch {
	case marked && literal == "":
		return pattern{}, emptyLiteral()
	case marked || text == anyMedia:
		return pattern{text: strings.Clone(literal)}, fault{}
	case text == "*" || text == "**":
		return pattern{form: formAny}, fault{}
	case len(text) > maxPath && isTemplated(text):
		return pattern{}, fault{fmt.Sprintf("is %d bytes long", len(text)), fmt.Sprintf("use at most %d", maxPath)}
	}
	p, f := compileValuePattern(text)
	if f != (fault{}) && !strings.HasSuffix(f.fix, exactly(text)) {
		f.fix += ", or " + exactly(text)
	}
	return p, f
}

func compileValuePattern(text string) (pattern, fault) {
	if expression, marked := strings.CutPrefix(text, expressionMark); marked {
		e, f := checkExpression(textValue, expression)
		return pattern{form: formExpression, expression: e}, f
	}
	if f := signFault(textValue, text); f != (fault{}) {
		return pattern{}, f
	}
	if !isTemplated(text) {
		return pattern{text: strings.Clone(text)}, fault{}
	}
	if text[0] != '/' {
		return compileOne(text)
	}
	if prefix, below := cutBelow(text); below && !isTemplated(prefix) {
		return pattern{form: formBelow, text: strings.Clone(prefix), separator: '/'}, fault{}
	}
	t := templateReader{text: text}
	return t.template('/', splitSegments(text[1:], '/'))
}

// compileOne compiles a template of one segment, in which ** means the same as *.
func compileOne(text string) (pattern, fault) {
	t := templateReader{text: text}
	if short, rest := strings.CutSuffix(text, "**"); rest {
		text = short + "*"
	}
	return t.template(0, []string{text})
}

// checkQuery checks the names in sorted order, as checkHeaders does.
func (c *checker) checkQuery(match string, query map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		p, f := pattern{}, checkEntryName(name)
		switch value := query[name]; {
		case f != (fault{}):
		case hasEscape(name), hasEscape(value):
			f = fault{"is percent-encoded", "write the name and the value decoded"}
		case value == "":
			f = fault{"has no value", `write the value, or "*" for any`}
		default:
			p, f = compileValue(value)
			f.fix = strings.Replace(f.fix, "not: {headers: {NAME:", "not: {query: {"+quote(name)+":", 1)
		}
		c.notePattern(match+".query."+name, p, f)
	}
}

// anyValue is the pattern that every value of a field matches.
const anyValue = "*"

// isHeaderValue reports whether a header can have the value.
func isHeaderValue(value string) bool {
	return strings.TrimSpace(value) == value && !strings.ContainsAny(value, "\r\n\x00")
}

// maxDomainLength bounds the domain of a match, as a server bounds that of a request.
const maxDomainLength = 256

func compileDomain(domain string) (pattern, fault) {
	if f := checkDomain(domain); f != (fault{}) || domain == "" {
		return pattern{}, f
	}
	return compileValue(domain)
}

func checkDomain(domain string) fault {
	bad, size := faultyPrintable(domain)
	switch {
	case domain == "":
		return fault{}
	case domain == literalMark:
		return emptyLiteral()
	case domain == anyValue:
		return fault{`"*" is no domain`, "leave domain out for every domain, or write " + exactly(domain)}
	case size > 0:
		return fault{fmt.Sprintf("has %q in it", domain[bad:bad+size]), "write printable characters without spaces, like shop"}
	case len(domain) > maxDomainLength:
		return fault{fmt.Sprintf("has %d bytes", len(domain)), fmt.Sprintf("write at most %d", maxDomainLength)}
	}
	return fault{}
}

// checkDescriptors checks the names in sorted order, as checkHeaders does.
func (c *checker) checkDescriptors(match string, descriptors map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(descriptors)) {
		p, f := pattern{}, checkEntryName(name)
		if f == (fault{}) && descriptors[name] == "" {
			f = fault{"has no value", `write the value, or "*" for any`}
		}
		if f == (fault{}) {
			f = namePatternFault(name)
		}
		if f == (fault{}) {
			p, f = compileValue(descriptors[name])
		}
		c.notePattern(match+".descriptors."+name, p, f)
	}
}

func checkEntryName(name string) fault {
	const fix = "write 1 to 128 printable characters without spaces, like tenant"
	bad, size := faultyPrintable(name)
	switch {
	case name == "":
		return fault{"has an empty name", fix}
	case size > 0:
		return fault{fmt.Sprintf("has %q in its name", name[bad:bad+size]), fix}
	case len(name) > maxNameLength:
		return fault{fmt.Sprintf("has a name of %d bytes", len(name)), fix}
	}
	return fault{}
}
