package refusal

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// marker stands for the text of a placeholder when a body is checked. It is a character for private use, which XML permits.
const marker = "\uE000"

// misplaced finds a placeholder where escaping does not help, such as in a script, or a body that is not of its type. problem is ""
// without one.
func misplaced(text string, pieces []piece, e escape) (at int, problem, fix string) {
	switch e {
	case escapeOther:
		for i := range pieces {
			if pieces[i].field > lastNumber {
				numbers := "{" + strings.Join(fieldNames[1:lastNumber+1], "}, {") + "}"
				return pieces[i].at, "has the placeholder {" + fieldNames[pieces[i].field] + "}, which cannot be escaped for this type",
					"use only numbers: " + numbers + "; or a content_type of HTML, JSON, XML or text/plain"
			}
		}
	case escapeHTML:
		safe := htmlText(text)
		for i := range pieces {
			if p := &pieces[i]; p.field > lastNumber && !safe[p.at] {
				return p.at, "has the placeholder {" + fieldNames[p.field] + "} in a tag, a comment, a script or a style",
					"write it between tags, as in <p>{" + fieldNames[p.field] + "}</p>"
			}
		}
	case escapeJSON:
		if !json.Valid(sample(pieces, "x")) {
			return 0, "is not JSON", `write texts in quotes, as in {"error": "{detail}", "wait": {retry_after}}`
		}
	case escapeXML:
		return 0, xmlProblem(pieces), "write well-formed XML, with placeholders between tags, as in <Message>{detail}</Message>"
	default:
	}
	return 0, "", ""
}

// sample writes 1 for numbers and text for other placeholders.
func sample(pieces []piece, text string) []byte {
	var b []byte
	for i := range pieces {
		switch p := &pieces[i]; {
		case p.field == literal:
			b = append(b, p.text...)
		case p.field <= lastNumber:
			b = append(b, '1')
		default:
			b = append(b, text...)
		}
	}
	return b
}

// xmlProblem says why a body is not XML, or why a placeholder is at a wrong place.
func xmlProblem(pieces []piece) string {
	want := 0
	for i := range pieces {
		if pieces[i].field > lastNumber {
			want++
		}
	}
	d := xml.NewDecoder(bytes.NewReader(sample(pieces, marker)))
	var open []string
	got, elements := 0, 0
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && elements == 0:
			return "has no element"
		case errors.Is(err, io.EOF) && got != want:
			return "has a placeholder outside of the text of an element"
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return "is not XML"
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements++
			open = append(open, strings.ToLower(token.Name.Local))
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 && open[len(open)-1] != "script" && open[len(open)-1] != "style" {
				got += bytes.Count(token, []byte(marker))
			}
		default:
		}
	}
}

// htmlText reports for each byte of a page whether it is text between tags, where a browser reads no markup in escaped values. It
// follows the tokens of the HTML standard, section 13.2.5. What it does not follow counts as no text.
func htmlText(s string) []bool {
	safe := make([]bool, len(s)+1)
	for i := 0; i < len(s); {
		if s[i] != '<' {
			safe[i] = true
			i++
			continue
		}
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, "<!--"):
			i += commentEnd(rest)
		case len(rest) > 1 && isLetter(rest[1]):
			end, name := tagEnd(rest)
			i += end
			i = elementText(s, i, name, safe)
		case len(rest) > 2 && rest[1] == '/' && isLetter(rest[2]):
			end, _ := tagEnd(rest)
			i += end
		case len(rest) > 1 && strings.IndexByte("!?/", rest[1]) >= 0:
			i += after(rest, ">")
		default:
			safe[i] = true
			i++
		}
	}
	return safe
}

// elementText passes over the text of elements without markup in them. It returns the place of the end tag.
func elementText(s string, from int, name string, safe []bool) int {
	text := false
	switch name {
	case "title", "textarea":
		// In SVG and MathML, a title may contain elements.
		before := strings.ToLower(s[:from])
		text = !strings.Contains(before, "<svg") && !strings.Contains(before, "<math")
	case "script", "style", "xmp", "iframe", "noembed", "noframes", "noscript":
	case "plaintext":
		return len(s)
	default:
		return from
	}
	end := from
	for lower := strings.ToLower(s); ; {
		next := strings.Index(lower[end:], "</"+name)
		if next < 0 {
			end = len(s)
			break
		}
		if end += next; end+2+len(name) == len(s) || strings.IndexByte(" \t\n\f\r/>", s[end+2+len(name)]) >= 0 {
			break
		}
		end += 2
	}
	if name == "script" && strings.Contains(s[from:end], "<!--") {
		return len(s) // In such a script, an end tag may be part of the script.
	}
	for i := from; text && i < end; i++ {
		safe[i] = true
	}
	return end
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// after returns the offset behind the first end in s, or the length of s.
func after(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}

// commentEnd returns the length of the comment at the start of s.
func commentEnd(s string) int {
	const begin = len("<!--")
	switch {
	case strings.HasPrefix(s[begin:], ">"):
		return begin + 1
	case strings.HasPrefix(s[begin:], "->"):
		return begin + 2
	default:
		return min(begin+after(s[begin:], "-->"), begin+after(s[begin:], "--!>"))
	}
}

// tagEnd returns the length of the tag at the start of s, and its name in lower case.
func tagEnd(s string) (int, string) {
	i := 1
	if s[i] == '/' {
		i++
	}
	from := i
	for i < len(s) && strings.IndexByte(" \t\n\f\r/>", s[i]) < 0 {
		i++
	}
	name := strings.ToLower(s[from:i])
	for named := false; i < len(s); i++ { // named: an attribute has a name, so that = begins its value.
		switch c := s[i]; {
		case c == '>':
			return i + 1, name
		case c == '/':
			named = false
		case strings.IndexByte(" \t\n\f\r", c) >= 0:
		case c != '=' || !named:
			named = true
		default:
			named = false
			rest := strings.TrimLeft(s[i+1:], " \t\n\f\r")
			i = len(s) - len(rest) + valueLength(rest) - 1
		}
	}
	return len(s), name
}

// valueLength returns the length of the value of an attribute at the start of s.
func valueLength(s string) int {
	if s == "" {
		return 0
	}
	if quote := s[:1]; quote == `"` || quote == "'" {
		return 1 + after(s[1:], quote)
	}
	if end := strings.IndexAny(s, " \t\n\f\r>"); end >= 0 {
		return end
	}
	return len(s)
}
