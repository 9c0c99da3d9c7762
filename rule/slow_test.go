package rule

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/testkit/property"
)

// slowPattern is the twin of compilePattern and match: it tries every text for each variable. Its time is exponential.
func slowPattern(kind textKind, pattern, text string) bool {
	if literal, marked := strings.CutPrefix(pattern, "="); marked {
		return text == literal
	}
	if expression, marked := strings.CutPrefix(pattern, "re:"); marked {
		return slowExpression(expression, text)
	}
	if kind == textValue && pattern == "*/*" {
		return text == pattern
	}
	separator := byte(0)
	switch {
	case kind == textPath && (pattern == "" || pattern == "/*" || pattern == "/**"):
		return true
	case kind == textHost:
		separator, pattern = '.', slowLower(pattern)
		if rest, found := strings.CutPrefix(pattern, "*."); found {
			pattern = "**." + rest
		}
	case strings.HasPrefix(pattern, "/"):
		separator = '/'
		if path, found := strings.CutSuffix(pattern, "/*"); found {
			pattern = path + "/**"
		}
		pattern = strings.TrimSuffix(pattern, "{$}")
	}
	return slowMatch(pattern, text, pattern, text, separator)
}

func slowExpression(expression, text string) bool {
	found := regexp.MustCompile(`^(?s:` + expression + `)$`).FindString(text)
	return found == text && (text != "" || regexp.MustCompile(`^(?:`+expression+`)$`).MatchString(""))
}

// slowLower puts a host into lower case, without its names.
func slowLower(pattern string) string {
	return regexp.MustCompile(`\{[^}]*\}|[^{]+`).ReplaceAllStringFunc(pattern, func(part string) string {
		if strings.HasPrefix(part, "{") {
			return part
		}
		return strings.ToLower(part)
	})
}

var slowVariable = regexp.MustCompile(`^\{([^:}]*?)(\.\.\.)?(?::((?:[^{}]|\{[^}]*\})*))?\}`)

// slowMatch compares what is left of a pattern with what is left of a text. whole and all are both from their begins.
func slowMatch(pattern, text, whole, all string, separator byte) bool {
	switch {
	case pattern == "":
		return text == ""
	case separator == '/' && (pattern == "/**" || slowRest.MatchString(pattern)):
		return text == "" || text[0] == '/'
	}
	least, rest, constraint, size := 0, false, "", 0
	if variable := slowVariable.FindStringSubmatch(pattern); variable != nil {
		least, rest, constraint, size = 1, variable[2] != "", variable[3], len(variable[0])
	} else if strings.HasPrefix(pattern, "**") {
		rest, size = true, 2
	} else if pattern[0] == '*' {
		size = 1
		before, after := whole[:len(whole)-len(pattern)], pattern[1:]
		if (before == "" || before[len(before)-1] == separator) && (after == "" || after[0] == separator) {
			least = 1 // A whole segment.
		}
	}
	if rest && separator == '.' {
		least = 1
	}
	if size == 0 {
		return text != "" && text[0] == pattern[0] && slowMatch(pattern[1:], text[1:], whole, all, separator)
	}
	for n := least; n <= len(text); n++ {
		own := text[:n]
		if !rest && separator != 0 && strings.IndexByte(own, separator) >= 0 {
			return false
		}
		if (constraint == "" || slowExpression(constraint, own)) && slowMatch(pattern[size:], text[n:], whole, all, separator) {
			return true
		}
	}
	return false
}

var slowRest = regexp.MustCompile(`^/\{[^:}]*\.\.\.\}$`)

// made draws a text that a pattern probably matches: each variable stands for a short text.
func made(t *property.T, pattern string) string {
	for _, mark := range []string{"=", "re:"} {
		pattern = strings.TrimPrefix(pattern, mark)
	}
	var b strings.Builder
	for pattern != "" {
		variable := slowVariable.FindString(pattern)
		switch {
		case variable != "":
			pattern = pattern[len(variable):]
		case pattern[0] == '*':
			pattern = strings.TrimLeft(pattern, "*")
		default:
			b.WriteByte(pattern[0])
			pattern = pattern[1:]
			continue
		}
		b.WriteString(property.SampledFrom([]string{"a", "b", "ab", "1", "12", "", "a.b", "a/b", "a-1", "A"}).Draw(t, "value"))
	}
	return mutated(t, b.String())
}

// mutated changes a text at one place, or leaves it.
func mutated(t *property.T, text string) string {
	if text == "" || !property.Bool().Draw(t, "mutate") {
		return text
	}
	at := property.IntRange(0, len(text)-1).Draw(t, "at")
	piece := property.SampledFrom([]string{"", "a", "/", ".", "//", "1", "-", "\n", "\xff"}).Draw(t, "piece")
	until := at + property.IntRange(0, 1).Draw(t, "removed")
	return text[:at] + piece + text[until:]
}

// drawnPattern draws a pattern of a few pieces, so that many patterns match one text.
func drawnPattern(t *property.T, kind textKind) string {
	segment := property.SampledFrom([]string{
		"a", "b", "1", "*", "{x}", "{x:[0-9]+}", "a*", "*a", "a*b*", "{x}-{y}", "a{x}", "{x}.{y}", "v{x:[a-b]{1,2}}b", "", "a", "b",
	})
	separator, end := "", []string{"", "**", "{rest...}"}
	switch kind {
	case textPath:
		separator, end = "/", []string{"", "", "/*", "/**", "/{rest...}", "a**", "/", "/{$}"}
	case textHost:
		separator, end = ".", []string{"*.", "**.", "{rest...}.", "", ""}
	default:
	}
	texts := property.SliceOfN(segment, 1, 3).Draw(t, "segments")
	for i := range texts { // Each name once.
		texts[i] = strings.NewReplacer("{x", "{x"+string(rune('0'+i)), "{y", "{y"+string(rune('0'+i))).Replace(texts[i])
	}
	text := strings.Join(texts, separator)
	one := property.SampledFrom(end).Draw(t, "end")
	switch kind {
	case textPath:
		return "/" + text + one
	case textHost:
		return one + text
	default:
		return text + one
	}
}

// TestPatternsAreSlowPatterns draws patterns and texts of them, and compares the result with that of the slow twin.
func TestPatternsAreSlowPatterns(t *testing.T) {
	compiled, matched := 0, 0
	property.Check(t, func(t *property.T) {
		kind := property.SampledFrom([]textKind{textPath, textPath, textHost, textValue, textMethod}).Draw(t, "kind")
		text := drawnPattern(t, kind)
		p, f := compilePattern(kind, text)
		if f != (fault{}) {
			return
		}
		compiled++
		for range 8 {
			with := made(t, text)
			if with == "" {
				continue // No request has an empty path, and an empty value counts as missing.
			}
			got, want := p.match(with), slowPattern(kind, text, with)
			if got != want {
				t.Fatalf("%s and %q: match is %t, want %t", text, with, got, want)
			}
			if got {
				matched++
			}
			for _, name := range p.names() {
				if value, ok := capturedOf(&p, with, name); ok != got || !strings.Contains(with, value) {
					t.Fatalf("%s captures %s=%q of %q: %t", text, name, value, with, ok)
				}
			}
		}
	})
	if compiled < 20 || matched < 20 {
		t.Errorf("only %d patterns, and %d texts matched", compiled, matched)
	}
}

// FuzzPattern compiles any text, compares it with any text, and checks that the result is the same each time, that a literal matches
// itself, and that captures are parts of the text.
func FuzzPattern(f *testing.F) {
	for _, row := range [][2]string{
		{"/users/{id}", "/users/7"},
		{"/{a}-{b:[0-9]+}/**", "/a-1/x"},
		{"*.{t}.example.com", "a.b.example.com"},
		{"re:(?i)a|b", "A"},
		{"=a", "a"},
		{"gold*", "gold"},
		{"{a{b}", "a"},
		{"/{a:{}}", "/"},
		{"/a**", "/a/b"},
		{"re:(a*)*", "aaaaaaaaaaaaaaaaaaaaaaab"},
	} {
		f.Add(row[0], row[1])
	}
	f.Fuzz(func(t *testing.T, text, with string) {
		for _, kind := range []textKind{textPath, textHost, textValue, textMethod} {
			p, bad := compilePattern(kind, text)
			if bad != (fault{}) {
				if bad.problem == "" || bad.fix == "" {
					t.Fatalf("%q: an empty fault: %+v", text, bad)
				}
				continue
			}
			matches := p.match(with)
			for _, name := range p.names() {
				if value, ok := capturedOf(&p, with, name); ok != matches || !strings.Contains(with, value) {
					t.Fatalf("%q captures %s=%q of %q: %t, want %t", text, name, value, with, ok, matches)
				}
			}
			if literal, one := p.literal(); one && (!p.match(literal) || matches && with != literal) {
				t.Fatalf("%q is no literal of itself", text)
			}
			if kind != textPath || !utf8.ValidString(text) || len(text) > 400 {
				continue // Lower case may be longer, and files are UTF-8.
			}
			for _, folds := range []Folds{{}, {Case: true}, {Case: true, TrailingSlash: true, Parameters: true}} {
				folded := folds.Pattern(text)
				if _, again := compilePath(folded); again != (fault{}) {
					t.Fatalf("%q with %+v is %q, which is at fault: %+v", text, folds, folded, again)
				}
				if folds.Pattern(folded) != folded {
					t.Fatalf("%q with %+v is %q, and then %q", text, folds, folded, folds.Pattern(folded))
				}
			}
		}
	})
}
