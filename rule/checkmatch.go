package rule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkHeaders checks the names in sorted order, so that errors have a fixed order.
func (c *checker) checkHeaders(headers map[string]string) {
	spelled := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		field := "match.headers." + name
		canonical := canonicalHeader(name)
		if other, twice := spelled[canonical]; twice {
			c.note(field, fault{fmt.Sprintf("duplicates %q", other), "remove one of them"})
		}
		spelled[canonical] = name
		c.note(field, checkHeader(canonical, headers[name]))
	}
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
	return checkPatternValue(value, `write one rule for each value that counts, "*" for any value`)
}

// checkPatternValue checks a value of which "*" is the only pattern.
func checkPatternValue(value, fix string) fault {
	literal, marked := cutLiteral(value)
	switch {
	case value == anyValue, marked && literal != "":
		return fault{}
	case marked:
		return emptyLiteral()
	}
	return valuePatternFault(textValue, value, fix)
}

// checkQuery checks the names in sorted order, as checkHeaders does.
func (c *checker) checkQuery(query map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		f := checkEntryName(name)
		switch value := query[name]; {
		case f != (fault{}):
		case hasEscape(name), hasEscape(value):
			f = fault{"is percent-encoded", "write the name and the value decoded"}
		case value == "":
			f = fault{"has no value", `write the value, or "*" for any`}
		default:
			f = checkPatternValue(value, `write one rule for each value that counts, "*" for any value`)
		}
		c.note("match.query."+name, f)
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
	if _, marked := cutLiteral(domain); marked {
		return fault{}
	}
	return valuePatternFault(textName, domain, "write one rule for each domain")
}

// checkDescriptors checks the names in sorted order, as checkHeaders does.
func (c *checker) checkDescriptors(descriptors map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(descriptors)) {
		f := checkEntryName(name)
		if f == (fault{}) && descriptors[name] == "" {
			f = fault{"has no value", `write the value, or "*" for any`}
		}
		if f == (fault{}) {
			f = namePatternFault(name)
		}
		if f == (fault{}) {
			f = checkPatternValue(descriptors[name],
				`write one rule for each value that counts, "*" for any value, a wildcard in the section domains`)
		}
		c.note("match.descriptors."+name, f)
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
