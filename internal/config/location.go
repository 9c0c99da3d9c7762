package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
)

const (
	// pathWord is replaced by the request's path, which begins with a slash.
	pathWord = "{path}"
	// maxLocation is a length that all common clients accept.
	maxLocation = 2048
	// locationLetters are the characters of a URL (RFC 3986), without braces.
	locationLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@!$&'()*+,;=%"
)

const locationExample = "https://www.example.com/busy or /busy"

// location reads the target of a redirect. The client chooses its path, so {path} must not be able
// to change the host: an attacker could redirect other users.
func (s *section) location(into *string) {
	s.declare("location", field.Taken, "Target of the redirect: a URL of http or https, or a path. {path} stands for the request's path, "+
		"escaped.")
	s.outline.field("location").text("", locationPattern, 1, maxLocation)
	v, ok := s.textOf("location", into)
	if !ok {
		return
	}
	text := v.text()
	plain := strings.ReplaceAll(text, pathWord, strings.Repeat("x", len(pathWord)))
	bad := strings.IndexFunc(plain, func(c rune) bool { return !strings.ContainsRune(locationLetters, c) })
	switch {
	case text == "":
		s.fault(v, "is empty", "write it like "+locationExample)
	case len(text) > maxLocation:
		s.fault(v, fmt.Sprintf("is %d bytes long", len(text)), fmt.Sprintf("use at most %d", maxLocation))
	case bad >= 0 && (plain[bad] == '{' || plain[bad] == '}'):
		s.faultAt(v, bad, "has a brace that is not part of {path}", "remove it, or write it %7B or %7D")
	case bad >= 0:
		s.faultAt(v, bad, "has "+quote(plain[bad:])+" in it, which is not allowed in a URL", "write it percent-encoded")
	case strings.HasPrefix(text, "/"):
		s.locationPath(v)
	default:
		s.locationURL(v)
	}
}

func (s *section) locationPath(v value) {
	text := v.text()
	switch {
	case strings.HasPrefix(text, "//"):
		s.fault(v, "begins with two slashes, which clients take for a host", "write https://, or one slash")
	case strings.HasPrefix(text, "/"+pathWord):
		s.fault(v, "begins with /{path}, which makes two slashes: clients take the next part for a host",
			"write a path before it, like /busy{path}")
	default:
		if _, err := url.Parse(strings.ReplaceAll(text, pathWord, "/")); err != nil {
			s.fault(v, "is not a path: "+parseProblem(err), "write it like /busy")
		}
	}
}

func (s *section) locationURL(v value) {
	scheme, rest, found := strings.Cut(v.text(), "://")
	const fix = "write it like " + locationExample
	if !found || scheme != "http" && scheme != "https" {
		s.fault(v, "must be a URL of http or https, or a path that begins with /", fix)
		return
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	if at := strings.Index(host, pathWord); at >= 0 && at+len(pathWord) == len(host) {
		host = host[:at] // The path's own slash ends the host.
	}
	u, err := url.Parse(scheme + "://" + host + strings.ReplaceAll(rest[end:], pathWord, "/"))
	switch {
	case strings.Contains(host, pathWord):
		s.faultAt(v, strings.Index(v.text(), pathWord), "{path} is part of the host",
			"write it after the host: otherwise a client could choose the host")
	case err != nil:
		s.fault(v, "is not a URL: "+parseProblem(err), fix)
	case u.User != nil:
		s.fault(v, "contains a user or a password", "remove it")
	case u.Hostname() == "":
		s.fault(v, "has no host", fix)
	default:
		if _, problem := upstreamAddress(u); problem != "" {
			s.fault(v, problem, fix)
		}
	}
}

// parseProblem returns the problem that net/url found, without the text of the URL.
func parseProblem(err error) string {
	if bad, found := errortype.As[*url.Error](err); found {
		return bad.Err.Error()
	}
	return err.Error()
}
