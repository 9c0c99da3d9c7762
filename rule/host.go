package rule

import (
	"fmt"
	"strings"
)

// checkHost refuses patterns that no request's host could match.
func checkHost(pattern string) fault {
	name := strings.TrimPrefix(pattern, "*.")
	if _, ok := parseHostIP(pattern); ok {
		return fault{}
	}
	switch {
	case pattern == "":
		return fault{"is empty", "write a host like api.example.com; leave hosts out for every host"}
	case pattern == "*":
		return fault{`"*" stands for no part of a name`, "leave hosts out for every host"}
	case strings.Contains(name, "*"):
		return fault{quote(pattern) + " has a * within", "put * only first, as in *.example.com"}
	case strings.Contains(name, "://") || strings.Contains(name, "/"):
		return fault{quote(pattern) + " is an address of a page", "write only the host, like api.example.com"}
	case strings.Contains(name, ":"):
		host, _, _ := strings.Cut(pattern, ":")
		return fault{quote(pattern) + " has a port", "hosts are compared without port: write " + quote(host)}
	case len(name) > maxHost:
		return fault{fmt.Sprintf("is %d bytes long", len(name)), fmt.Sprintf("use at most %d", maxHost)}
	}
	return checkLabels(pattern, name)
}

func checkLabels(pattern, name string) fault {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return fault{quote(pattern) + " has an empty or too long label", "write it like api.example.com, with no dot at the end"}
		}
		for i := range len(label) {
			if c := label[i]; !isDigit(c) && !isLetter(c) && c != '-' && c != '_' {
				return fault{
					fmt.Sprintf("%s has %q in it", quote(pattern), label[i:i+1]),
					"write letters, digits, - and dots; an international name as xn--...",
				}
			}
		}
	}
	return fault{}
}
