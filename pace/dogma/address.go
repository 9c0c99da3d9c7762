package dogma

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

const maxAddress = 4096

// address gives the URL of the document's content, with each part of its path escaped,
// so that no name can lead to another path.
func (c Config) address() (string, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" {
		return "", fmt.Errorf(`dogma: URL %.100q: write it like "https://dogma.example:36462"`, withoutUser(c.URL))
	}
	if base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" {
		return "", fmt.Errorf("dogma: URL %.100q: write scheme, host and port only; a token goes into Token or TokenFile",
			withoutUser(c.URL))
	}
	document, found := strings.CutPrefix(c.Path, "/")
	if !found || !strings.HasSuffix(strings.ToLower(document), ".json") {
		return "", fmt.Errorf(`dogma: Path %.100q: name a JSON file from the repository's root, like "/providers/mail.json"`, c.Path)
	}
	if c.JSONPath != "" && !strings.HasPrefix(c.JSONPath, "$") {
		return "", fmt.Errorf(`dogma: JSONPath %.100q: it begins with $, like "$.providers.mail"`, c.JSONPath)
	}
	segments := append([]string{"api", "v1", "projects", c.Project, "repos", c.Repository, "contents"}, strings.Split(document, "/")...)
	for i, s := range segments {
		if err := checkSegment(s); err != nil {
			return "", err
		}
		segments[i] = url.PathEscape(s)
	}
	path := strings.TrimSuffix(base.EscapedPath(), "/") + "/" + strings.Join(segments, "/")
	base.RawPath = path
	if base.Path, err = url.PathUnescape(path); err != nil {
		return "", fmt.Errorf("dogma: URL %.100q: its path is not escaped as a URL's is", c.URL)
	}
	if c.JSONPath != "" {
		base.RawQuery = url.Values{"jsonpath": {c.JSONPath}}.Encode()
	}
	if address := base.String(); len(address) <= maxAddress {
		return address, nil
	}
	return "", fmt.Errorf("dogma: an address of more than %d bytes: use a shorter Path or JSONPath", maxAddress)
}

// checkSegment refuses what is no name, and what the server takes for a pattern.
func checkSegment(s string) error {
	switch {
	case s == "":
		return errors.New("dogma: Project, Repository and each part of Path must have a name")
	case s == "." || s == ".." || strings.ContainsAny(s, "/*,") || !utf8.ValidString(s):
		return fmt.Errorf("dogma: %.100q is no name of a project, a repository, a folder or a file", s)
	}
	return nil
}

// withoutUser leaves out what may be a password.
func withoutUser(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	scheme, _, found := strings.Cut(text[:at], "//")
	if !found {
		return "…" + text[at:]
	}
	return scheme + "//…" + text[at:]
}
