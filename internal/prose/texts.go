package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// text is a paragraph or a message, with its line in the file.
type text struct {
	line int
	text string
}

// unquoted removes code and words in quotation marks from a text.
func unquoted(text string) string {
	for _, mark := range []string{"`", `"`} {
		parts := strings.Split(text, mark)
		for i := 1; i < len(parts)-1; i += 2 {
			parts[i] = "x"
		}
		text = strings.Join(parts, "")
	}
	return text
}

// goTexts returns the texts of a Go file: each paragraph of its comments, and the string
// literals that have a space.
func goTexts(name string, source []byte) ([]text, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var texts []text
	for _, group := range file.Comments {
		texts = append(texts, paragraphs(set.Position(group.Pos()).Line, commentLines(group))...)
	}
	if strings.HasSuffix(name, "_test.go") {
		return texts, nil // String literals in tests are often data and not messages.
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if said, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(said, " ") {
			texts = append(texts, text{set.Position(literal.Pos()).Line, unquoted(said)})
		}
		return true
	})
	return texts, nil
}

// commentLines returns the lines of a comment without its marks. It returns indented lines,
// which are code, as empty lines.
func commentLines(group *ast.CommentGroup) []string {
	var lines []string
	for _, c := range group.List {
		for line := range strings.Lines(c.Text) {
			line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimRight(line, "\n"), "//"), "/*")
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "   ") || strings.HasPrefix(line, "go:") {
				line = ""
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// pageTexts returns the paragraphs of a Markdown page, without code blocks.
func pageTexts(source []byte) []text {
	lines, fenced := []string{}, false
	for line := range strings.Lines(string(source)) {
		fence := strings.HasPrefix(strings.TrimLeft(line, " >"), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced || strings.HasPrefix(line, "    ") {
			line = ""
		}
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return paragraphs(1, lines)
}

// paragraphs joins adjacent lines, so that a phrase is found across a line break.
func paragraphs(first int, lines []string) []text {
	var texts []text
	var words []string
	begin := 0
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && strings.TrimSpace(lines[i]) != "" {
			if len(words) == 0 {
				begin = i
			}
			words = append(words, strings.TrimSpace(lines[i]))
			continue
		}
		if len(words) > 0 {
			texts = append(texts, text{first + begin, unquoted(strings.Join(words, " "))})
			words = words[:0]
		}
	}
	return texts
}
