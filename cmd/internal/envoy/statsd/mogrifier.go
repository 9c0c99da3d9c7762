package statsd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Mogrifier changes a dotted name into a name with tags. $1 in the name and in the values of tags
// stands for the first group of the pattern.
type Mogrifier struct {
	pattern *regexp.Regexp
	name    string
	tags    []Tag
}

// NewMogrifier compiles a pattern.
func NewMogrifier(pattern, name string, tags []Tag) (Mogrifier, error) {
	p, err := regexp.Compile(pattern)
	if err != nil {
		return Mogrifier{}, fmt.Errorf("statsd: the pattern %.200q is invalid: %w", pattern, err)
	}
	return Mogrifier{p, name, tags}, nil
}

// apply gives the name and the tags of a matching name.
func (m *Mogrifier) apply(from string) (name string, tags []Tag, matches bool) {
	at := m.pattern.FindStringSubmatchIndex(from)
	if at == nil {
		return "", nil, false
	}
	expand := func(text string) string { return string(m.pattern.ExpandString(nil, text, from, at)) }
	for _, t := range m.tags {
		tags = append(tags, Tag{expand(t.Name), expand(t.Value)})
	}
	return expand(m.name), tags, true
}

// appendDog appends a line of DogStatsD.
func (c *Config) appendDog(dst []byte, name string, value uint64, kind lineKind) []byte {
	var tags []Tag
	for i := range c.Mogrifiers {
		if changed, more, matches := c.Mogrifiers[i].apply(name); matches {
			name, tags = changed, more
			break
		}
	}
	dst = append(append(dst, plain(name)...), ':')
	dst = append(strconv.AppendUint(dst, value, 10), kind...)
	sign := "|#"
	for _, list := range [...][]Tag{tags, c.Tags} {
		for _, t := range list {
			dst = append(append(append(dst, sign...), plain(t.Name)...), ':')
			dst = append(dst, plain(t.Value)...)
			sign = ","
		}
	}
	return append(dst, '\n')
}

// plain replaces the signs that separate the parts of a line. Names have values of requests in them.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(":|#,@\n\r", c) {
			return '_'
		}
		return c
	}, text)
}
