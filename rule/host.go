package rule

import (
	"fmt"
	"slices"
	"strings"
)

// compileHost compiles a host, and refuses patterns that match no host of a request.
func compileHost(text string) (pattern, fault) {
	literal, marked := cutLiteral(text)
	if ip, ok := parseHostIP(literal); ok {
		return pattern{text: ip.String(), separator: '.'}, fault{}
	}
	if expression, is := strings.CutPrefix(text, expressionMark); is {
		e, f := checkExpression(textHost, expression)
		return pattern{form: formExpression, separator: '.', expression: e}, f
	}
	plain := literal
	if !marked {
		plain = strings.ReplaceAll(withoutVariables(text), "*", "v")
	}
	if f := checkHost(text, plain); f != (fault{}) {
		return pattern{}, f
	}
	if marked || !isTemplated(text) {
		return pattern{text: strings.ToLower(literal), separator: '.'}, fault{}
	}
	if name, below := cutBelowHost(text); below && !isTemplated(name) {
		return pattern{form: formBelow, text: "." + strings.ToLower(name), separator: '.'}, fault{}
	}
	t := templateReader{text: text}
	labels := splitSegments(text, '.')
	slices.Reverse(labels)
	p, f := t.template('.', labels)
	p.lower()
	return p, f
}

// cutBelowHost removes the begin of a host that stands for every name below it.
func cutBelowHost(text string) (name string, below bool) {
	if name, below = strings.CutPrefix(text, "**."); below {
		return name, true
	}
	return strings.CutPrefix(text, "*.")
}

// lower converts the literals of a template to the spelling of hosts.
func (p *pattern) lower() {
	for i := range p.segments {
		s := &p.segments[i]
		s.first = strings.ToLower(s.first)
		for j := range s.variables {
			s.variables[j].next = strings.ToLower(s.variables[j].next)
		}
	}
}

// checkHost refuses hosts that no request has. plain is the text without a mark and with a letter in place of each sign.
// everyHost and orListHosts end fixes for texts of a match.
const (
	everyHost   = "leave hosts out for every host"
	orListHosts = ", or list the hosts"
)

func checkHost(text, plain string) fault {
	if f := hostPatternFault(text, plain); f != (fault{}) {
		return f
	}
	switch {
	case text == "":
		return fault{"is empty", "write a host like api.example.com; " + everyHost}
	case strings.Trim(text, "*") == "":
		return fault{quote(text) + " has no name after the *", everyHost}
	case strings.Contains(plain, "://") || strings.Contains(plain, "/"):
		return fault{quote(text) + " is a URL or has a path", "write only the host, like api.example.com"}
	case strings.Contains(plain, ":"):
		host, _, _ := strings.Cut(text, ":")
		return fault{quote(text) + " has a port", "hosts are compared without port: write " + quote(host)}
	case len(plain) > maxHost && !isTemplated(text):
		return fault{fmt.Sprintf("is %d bytes long", len(plain)), fmt.Sprintf("use at most %d", maxHost)}
	}
	return checkLabels(text, plain)
}

// hostPatternFault refuses signs of other languages.
func hostPatternFault(text, plain string) fault {
	what, rest := cutSign(textHost, text)
	fix := "write one like *.example.com, which matches every name below it" + orListHosts
	domain := strings.TrimPrefix(plain[strings.LastIndexAny(plain, "{}[]()|+?^$\\:")+1:], ".")
	if form := expressionFor(textHost, text); form != "" && strings.ContainsAny(text, "[(|+?\\^$~") {
		fix = "write " + quote(form)
	} else if strings.Contains(domain, ".") && checkLabels(domain, domain) == (fault{}) {
		fix = "write " + quote("*."+domain) + " for every name below it" + orListHosts
	}
	switch {
	case text == "" || text == literalMark:
		return fault{}
	case what == signNot:
		return fault{
			quote(text) + leavesOut,
			leaveOut(textHost, rest) + ", or list the hosts that count, like [api.example.com]",
		}
	case what != signNone || strings.ContainsAny(plain, "{}()|+?^$\\") || strings.Contains(plain, "[") && !strings.Contains(plain, ":"),
		strings.HasPrefix(text, ".") && len(text) > 1:
		return fault{quote(text) + " looks like a pattern of another language", fix}
	default:
		return fault{}
	}
}

func checkLabels(pattern, name string) fault {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return fault{
				quote(pattern) + " has an empty label or a label over 63 bytes",
				"write it like api.example.com, with no dot at the end",
			}
		}
		for i := range len(label) {
			if c := label[i]; !isDigit(c) && !isLetter(c) && c != '-' && c != '_' {
				return fault{
					fmt.Sprintf("%s contains %q", quote(pattern), label[i:i+1]),
					"write letters, digits, - and dots; an international name as xn--...",
				}
			}
		}
	}
	return fault{}
}
