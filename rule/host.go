package rule

import (
	"fmt"
	"strings"
)

// checkHost refuses patterns that match no host of a request.
func checkHost(pattern string) fault {
	name := strings.TrimPrefix(pattern, "*.")
	if literal, marked := cutLiteral(pattern); marked {
		name = literal
	}
	if _, ok := parseHostIP(strings.TrimPrefix(pattern, literalMark)); ok {
		return fault{}
	}
	if f := hostPatternFault(pattern, name); f != (fault{}) {
		return f
	}
	switch {
	case pattern == "":
		return fault{"is empty", "write a host like api.example.com; leave hosts out for every host"}
	case pattern == "*":
		return fault{`"*" has no name after the *`, "leave hosts out for every host"}
	case strings.Contains(name, "://") || strings.Contains(name, "/"):
		return fault{quote(pattern) + " is a URL or has a path", "write only the host, like api.example.com"}
	case strings.Contains(name, ":"):
		host, _, _ := strings.Cut(pattern, ":")
		return fault{quote(pattern) + " has a port", "hosts are compared without port: write " + quote(host)}
	case len(name) > maxHost:
		return fault{fmt.Sprintf("is %d bytes long", len(name)), fmt.Sprintf("use at most %d", maxHost)}
	}
	return checkLabels(pattern, name)
}

// hostPatternFault refuses what looks like a pattern. name is the pattern without "*." or a mark.
func hostPatternFault(pattern, name string) fault {
	what, _ := cutSign(textName, name)
	fix := "write one like *.example.com, which matches every name below it, or list the hosts"
	domain := strings.TrimPrefix(name[strings.LastIndexAny(name, "*{}[]()|+?^$\\:")+1:], ".")
	if strings.Contains(domain, ".") && checkLabels(domain, domain) == (fault{}) {
		fix = "write " + quote("*."+domain) + " for every name below it, or list the hosts"
	}
	switch {
	case pattern == "" || pattern == "*" || pattern == literalMark:
		return fault{}
	case what == signNot:
		return fault{
			quote(pattern) + " looks like a pattern: a rule cannot leave a host out",
			"list the hosts that count, like [api.example.com]",
		}
	case what != signNone || strings.ContainsAny(name, "*{}()|+?^$\\") || strings.Contains(name, "[") && !strings.Contains(name, ":"),
		strings.HasPrefix(pattern, ".") && len(pattern) > 1:
		return fault{quote(pattern) + " looks like a pattern, and hosts have only *. at their beginning", fix}
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
