package rule

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// expressionMark begins a regular expression.
const expressionMark = "re:"

const (
	// maxExpression bounds the text of an expression. A longer one is hard to understand.
	maxExpression = 512
	// maxExpressionSize bounds a compiled expression, in instructions of package regexp. The time of a comparison is at
	// most the product of this size and of the length of the text. Below 500 instructions and some thousand bytes, package
	// regexp also takes its faster ways.
	maxExpressionSize = 480
	// maxExpressionsSize bounds all expressions of one index: those of paths may all be compared with one request.
	maxExpressionsSize = 20_000
)

// expression is a regular expression that matches whole texts. Package regexp guarantees a time that is linear in the
// length of the text.
type expression struct {
	compiled *regexp.Regexp
	prefix   string // of every text that matches
	size     int
}

func (e *expression) match(text string) bool {
	return strings.HasPrefix(text, e.prefix) && e.compiled.MatchString(text)
}

// compileExpression compiles an expression without its mark. It matches a whole text, and its dot matches every character: a line
// break that a client sends would otherwise evade ".*".
func compileExpression(text string) (*expression, fault) {
	if len(text) > maxExpression {
		return nil, fault{
			fmt.Sprintf("has an expression of %d bytes", len(text)), fmt.Sprintf("use at most %d", maxExpression),
		}
	}
	parsed, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil, fault{
			quote(expressionMark+text) + " is no expression of RE2: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "),
			"correct it; https://golang.org/s/re2syntax lists the syntax",
		}
	}
	whole := `(?s:\A(?:` + text + `)\z)`
	parsedWhole, err := syntax.Parse(whole, syntax.Perl)
	if err != nil { // Such as an option or a bracket that reaches beyond the group.
		return nil, fault{quote(expressionMark+text) + " is no expression of RE2", "close each group in it"}
	}
	program, err := syntax.Compile(parsedWhole.Simplify())
	if err != nil || len(program.Inst) > maxExpressionSize {
		return nil, fault{
			quote(expressionMark+text) + " is too large",
			fmt.Sprintf("use smaller repetitions or fewer choices: at most %d instructions", maxExpressionSize),
		}
	}
	compiled, err := regexp.Compile(whole)
	if err != nil {
		return nil, fault{quote(expressionMark+text) + " is no expression of RE2", "close each group in it"}
	}
	return &expression{compiled, literalPrefix(parsed), len(program.Inst)}, fault{}
}

// literalPrefix returns a text with which every match begins.
func literalPrefix(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 && !strings.ContainsRune(string(re.Rune), '\uFFFD') { // It also matches an invalid byte.
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalPrefix(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literalPrefix(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if sub.Op != syntax.OpBeginText && sub.Op != syntax.OpEmptyMatch {
				return literalPrefix(sub)
			}
		}
	default:
	}
	return ""
}

// checkExpression compiles the text behind the mark re:. It refuses expressions that authors of other programs mean in another
// way: those compare a part of a text.
func checkExpression(kind textKind, text string) (*expression, fault) {
	marked := quote(expressionMark + text)
	if text == "" {
		return nil, fault{"has no expression after " + expressionMark, `write one, like "re:/v[0-9]+/.*"`}
	}
	e, f := compileExpression(text)
	if f != (fault{}) {
		return nil, f
	}
	inner, begins := strings.CutPrefix(text, "^")
	ends := strings.HasSuffix(inner, "$") && !strings.HasSuffix(inner, `\$`)
	if ends {
		inner = strings.TrimSuffix(inner, "$")
	}
	if plain, is := plainText(inner); is && begins == ends && !hasName(inner) {
		return nil, fault{marked + " has no operators", plainFix(kind, plain)}
	}
	switch {
	case kind == textPath && strings.Contains(inner, "/*"):
		return nil, fault{
			marked + " has /*, any number of slashes in an expression",
			"write " + quote(expressionMark+strings.ReplaceAll(inner, "/*", "/.*")),
		}
	case hasName(inner):
		return nil, fault{marked + " has a name in braces, which an expression takes as written", "write [^/]+ for a segment"}
	case hasAnchor(inner):
		return nil, fault{marked + " has ^ or $ in the middle", "remove them: re: compares the whole text"}
	case begins && !ends && !strings.HasSuffix(inner, ".*"):
		return nil, fault{
			marked + " is compared with the whole text",
			"write " + quote(expressionMark+inner+".*") + " for what begins so, or " + quote(expressionMark+inner),
		}
	case ends && !begins && !strings.HasPrefix(inner, ".*"):
		return nil, fault{
			marked + " is compared with the whole text",
			"write " + quote(expressionMark+".*"+inner) + " for what ends so, or " + quote(expressionMark+inner),
		}
	case kind == textPath && e.prefix != "" && e.prefix[0] != '/':
		return nil, fault{marked + " matches no path, because paths begin with /", "write " + quote(expressionMark+"/"+text)}
	case kind == textPath && hasLiteral(text, "//"):
		return nil, fault{
			marked + " matches no path, because paths have no empty segments",
			"write " + quote(expressionMark+strings.ReplaceAll(text, "//", "/")),
		}
	}
	return e, fault{}
}

// hasLiteral reports whether each text that an expression matches has this text, as far as its parts in a row say it.
func hasLiteral(text, literal string) bool {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return false
	}
	parts := []*syntax.Regexp{parsed}
	if parsed.Op == syntax.OpConcat {
		parts = parsed.Sub
	}
	return slices.ContainsFunc(parts, func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpLiteral && strings.Contains(string(re.Rune), literal)
	})
}

// hasAnchor reports whether an expression has a sign for an end of the text.
func hasAnchor(text string) bool {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return false
	}
	var walk func(re *syntax.Regexp) bool
	walk = func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText || slices.ContainsFunc(re.Sub, walk)
	}
	return walk(parsed)
}

// hasName reports whether an expression has a variable of a template, like {id}.
func hasName(text string) bool {
	for at := range len(text) - 1 {
		if text[at] == '{' && isLetter(text[at+1]) && (at == 0 || strings.IndexByte(`\pP`, text[at-1]) < 0) {
			return true
		}
	}
	return false
}

// plainFix says how to write a text that needs no expression.
func plainFix(kind textKind, plain string) string {
	switch {
	case kind == textMethod:
		return "write " + quote(methodForms([]string{plain})[0])
	case kind == textPath:
		plain = "/" + strings.TrimLeft(plain, "/")
		return "write " + quote(plain) + ", or " + quote(plain+"/*") + " for all paths below it"
	case kind == textHost || isTemplated(plain):
		return "write " + quote(plain)
	default:
		return "write " + quote(plain) + ", or " + quote("*"+plain+"*") + " for every text with it"
	}
}

// plainText returns the text of an expression without operators.
func plainText(text string) (plain string, is bool) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil || parsed.Op != syntax.OpLiteral || parsed.Flags&syntax.FoldCase != 0 {
		return "", false
	}
	return string(parsed.Rune), true
}
