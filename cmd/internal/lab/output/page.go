package output

import (
	"html"
	"io"
	"strings"
	"unicode"
)

// Page is one HTML file without a script and without a reference to anything outside.
type Page struct {
	body  strings.Builder
	title string
}

// pageStart has what a browser needs to read the page. The policy forbids every script and every request.
const pageStart = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>`

const pageStyle = `</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 980px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; margin: 0.6em 0 } td, th { padding: 2px 12px 2px 0; text-align: right; vertical-align: top }
td:first-child, th:first-child { text-align: left; overflow-wrap: anywhere } th { border-bottom: 1px solid #999; font-weight: 600 }
.note { color: #555 } .partial { background: #fff0c8; padding: 0.5em } pre { background: #f4f4f4; padding: 0.6em; overflow-x: auto }
svg { max-width: 100%; height: auto }
</style>
</head>
<body>
`

// NewPage begins a page with its title.
func NewPage(title string) *Page {
	p := &Page{title: title}
	p.body.WriteString("<h1>" + Escape(title) + "</h1>\n")
	return p
}

// Heading begins a part of the page.
func (p *Page) Heading(text string) { p.body.WriteString("<h2>" + Escape(text) + "</h2>\n") }

// Text adds a paragraph.
func (p *Page) Text(text string) { p.body.WriteString("<p>" + Escape(text) + "</p>\n") }

// Partial says that the run was ended before its end.
func (p *Page) Partial(text string) {
	p.body.WriteString("<p class=\"partial\">" + Escape(text) + "</p>\n")
}

// Source adds a text with its line breaks, such as a command line or a configuration.
func (p *Page) Source(text string) { p.body.WriteString("<pre>" + Escape(text) + "</pre>\n") }

// List adds a list of sentences; an empty list adds nothing.
func (p *Page) List(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.body.WriteString("<ul>\n")
	for _, line := range lines {
		p.body.WriteString("<li>" + Escape(line) + "</li>\n")
	}
	p.body.WriteString("</ul>\n")
}

// Table adds a table, below its title.
func (p *Page) Table(t *Table) {
	if t.Title != "" {
		p.Heading(t.Title)
	}
	p.body.WriteString("<table>\n<tr>")
	for _, cell := range t.Head {
		p.body.WriteString("<th>" + Escape(cell) + "</th>")
	}
	p.body.WriteString("</tr>\n")
	for _, row := range t.Rows {
		p.body.WriteString("<tr>")
		for _, cell := range row {
			p.body.WriteString("<td>" + Escape(cell) + "</td>")
		}
		p.body.WriteString("</tr>\n")
	}
	p.body.WriteString("</table>\n")
	if t.Note != "" {
		p.body.WriteString("<p class=\"note\">" + Escape(t.Note) + "</p>\n")
	}
}

// Picture adds a picture.
func (p *Page) Picture(s *Picture) {
	p.body.WriteString("<figure>\n")
	s.write(&p.body)
	p.body.WriteString("</figure>\n")
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	_, err := io.WriteString(w, pageStart+Escape(p.title)+pageStyle+p.body.String()+"</body>\n</html>\n")
	return err
}

// Escape makes a text safe in HTML and in SVG. Control characters, and characters that change the order of a text, become U+FFFD.
func Escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\ufffe', r == '\uffff':
			return unicode.ReplacementChar
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "\ufffd")))
}
