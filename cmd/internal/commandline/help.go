package commandline

import (
	"fmt"
	"go/doc/comment"
	"io"
	"strings"
)

const (
	indent = "  "
	gap    = "    " // Between two columns.
	// minFirst is the least bound of the first column. A longer cell has a line alone.
	minFirst = 30
)

// page collects the lines of a help text.
type page struct {
	lines []string
	width int // Of a line, in columns of the terminal.
}

// WriteHelp writes the help of the command that was named, in lines of at most so many columns.
func (p *Parsed) WriteHelp(w io.Writer, columns int) error {
	c, out := p.Selected(), &page{width: columns}
	out.print("Usage: " + c.summary())
	for _, text := range []string{c.Help, c.Detail} {
		if text != "" {
			out.print("")
			out.lines = append(out.lines, wrap(text, columns)...)
		}
	}
	if len(c.Args) > 0 {
		var rows [][2]string
		for _, v := range c.Args {
			rows = append(rows, [2]string{v.short(), v.described()})
		}
		out.table("Arguments:", rows)
	}
	out.table("Flags:", c.flagRows())
	if leaves := c.leaves(); len(leaves) > 0 {
		var rows [][2]string
		for _, leaf := range leaves {
			rows = append(rows, [2]string{leaf.path(), leaf.Help})
		}
		out.table("Commands:", rows)
	}
	if c.Parent == nil {
		out.print("")
		out.print(fmt.Sprintf("Run \"%s <command> --help\" for more information on a command.", c.program))
	}
	_, err := io.WriteString(w, strings.Join(out.lines, "\n")+"\n")
	return err
}

// summary returns the command line in short.
func (c *Command) summary() string {
	words, optional := []string{strings.TrimSpace(c.program + " " + c.path())}, 0
	for _, v := range c.Args {
		text := v.short()
		if !v.required {
			optional++
			text = strings.TrimSuffix(text, "]")
		}
		words = append(words, text)
	}
	summary := strings.Join(words, " ") + strings.Repeat("]", optional)
	if len(c.Children) > 0 {
		summary += " <command>"
	}
	flags := len(c.Flags)
	switch {
	case c.Parent == nil:
		flags-- // Every program has the flag for help.
	case c.Parent.Parent != nil:
		flags += len(c.Parent.Flags)
	}
	if flags > 0 {
		summary += " [flags]"
	}
	return summary
}

// flagRows returns a row for each flag, and an empty one between the flags of two commands.
func (c *Command) flagRows() [][2]string {
	var rows [][2]string
	short := false
	for _, level := range c.levels() {
		for _, f := range level {
			short = short || f.Short != "" && !f.Hidden
		}
	}
	for _, level := range c.levels() {
		separated := len(rows) == 0
		for _, f := range level {
			if f.Hidden {
				continue
			}
			if !separated {
				rows, separated = append(rows, [2]string{}), true
			}
			rows = append(rows, [2]string{f.form(short), f.described()})
		}
	}
	return rows
}

// form returns the flag as it is written, below short flags if there are any.
func (v *Value) form(short bool) string {
	text := "--" + v.Name
	if !v.IsBool() {
		text += "=" + v.shown()
	}
	switch {
	case v.Short != "":
		return "-" + v.Short + ", " + text
	case short:
		return "    " + text
	}
	return text
}

// described returns the help of a value with its variables.
func (v *Value) described() string {
	if len(v.Envs) == 0 {
		return v.Help
	}
	names := "($" + strings.Join(v.Envs, ", $") + ")"
	if text, sentence := strings.CutSuffix(v.Help, "."); sentence {
		return text + " " + names + "."
	}
	return strings.TrimSpace(v.Help + " " + names)
}

func (p *page) print(line string) { p.lines = append(p.lines, strings.TrimRight(line, " ")) }

// table prints a title and rows of two columns below it.
func (p *page) table(title string, rows [][2]string) {
	p.print("")
	p.print(title)
	width := p.width - len(indent)
	most := max(375*width/1000, minFirst)
	first := 0
	for _, row := range rows {
		if n := len(row[0]); n < most {
			first = max(first, n)
		}
	}
	for _, row := range rows {
		lines := wrap(row[1], width-first-len(gap))
		line := indent + row[0]
		if len(row[0]) < most {
			line = fmt.Sprintf("%s%-*s%s%s", indent, first, row[0], gap, lines[0])
			lines = lines[1:]
		}
		p.print(line)
		for _, more := range lines {
			p.print(indent + strings.Repeat(" ", first) + gap + more)
		}
	}
}

// wrap breaks a text into lines.
func wrap(text string, width int) []string {
	printer := comment.Printer{TextWidth: width}
	written := printer.Text(new(comment.Parser).Parse(text))
	return strings.Split(strings.TrimRight(string(written), "\n"), "\n")
}
