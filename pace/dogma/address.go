package dogma

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

const maxAddress = 4096

// address returns the URL of the document's content. Each part of its path is escaped,
// so that a name cannot lead to another path.
func (c Config) address() (string, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" {
		return "", fmt.Errorf(`dogma: URL %.100q: use the form "https://dogma.example:36462"`, withoutUser(c.URL))
	}
	if base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" {
		return "", fmt.Errorf("dogma: URL %.100q: use scheme, host and port only, and put a token in Token or TokenFile",
			withoutUser(c.URL))
	}
	document, found := strings.CutPrefix(c.Path, "/")
	if !found || !strings.HasSuffix(strings.ToLower(document), ".json") {
		return "", fmt.Errorf(
			`dogma: Path %.100q: give the path of a JSON file from the repository's root, such as "/providers/mail.json"`, c.Path)
	}
	if c.JSONPath != "" && !strings.HasPrefix(c.JSONPath, "$") {
		return "", fmt.Errorf(`dogma: JSONPath %.100q must begin with $, such as "$.providers.mail"`, c.JSONPath)
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
		return "", fmt.Errorf("dogma: URL %.100q: its path has an invalid escape: write %% as %%25", c.URL)
	}
	if c.JSONPath != "" {
		base.RawQuery = url.Values{"jsonpath": {c.JSONPath}}.Encode()
	}
	if address := base.String(); len(address) <= maxAddress {
		return address, nil
	}
	return "", fmt.Errorf("dogma: the request URL is longer than %d bytes: use a shorter Path or JSONPath", maxAddress)
}

// checkSegment refuses an invalid name. The server reads a name with * or , as a pattern.
func checkSegment(s string) error {
	switch {
	case s == "":
		return errors.New("dogma: Project, Repository and each part of Path must not be empty")
	case s == "." || s == ".." || strings.ContainsAny(s, "/*,") || !utf8.ValidString(s):
		return fmt.Errorf("dogma: %.100q is not a valid name of a project, repository, folder or file: "+
			"use valid UTF-8, other than . and .., without slash, asterisk and comma", s)
	}
	return nil
}

// withoutUser removes the user part of a URL, which may be a password.
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
