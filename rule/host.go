package rule

import (
	"fmt"
	"strings"
)

// checkHost refuses patterns that match no host of a request.
func checkHost(pattern string) fault {
	name := strings.TrimPrefix(pattern, "*.")
	if _, ok := parseHostIP(pattern); ok {
		return fault{}
	}
	switch {
	case pattern == "":
		return fault{"is empty", "write a host like api.example.com; leave hosts out for every host"}
	case pattern == "*":
		return fault{`"*" has no name after the *`, "leave hosts out for every host"}
	case strings.Contains(name, "*"):
		return fault{quote(pattern) + " uses * in an unsupported place", "put * only first, as in *.example.com"}
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
