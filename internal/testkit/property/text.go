package property

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// String makes texts of UTF-8: usual letters and signs, and any rune.
func String() Generator[string] {
	letter := OneOf(
		SampledFrom(strings.Split("a,b,A,Z,0,9, ,/,.,-,_,:,*,%,\",',\\,\x00,\n,\x7f,ü,€,𐍈", ",")),
		Map(IntRange(0, utf8.MaxRune), func(n int) string { return string(rune(n)) }),
	)
	return Map(SliceOf(letter), func(letters []string) string { return strings.Join(letters, "") })
}

// mostRepeats bounds * and + in a StringMatching.
const mostRepeats = 16

// StringMatching makes texts that the regular expression matches as a whole. It knows literals, classes, groups, alternatives and
// repeats. It panics for any other expression, which is a fault of the test.
func StringMatching(expression string) Generator[string] {
	e, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic(err) //nolint:forbidigo // A fault of the test.
	}
	return matching(e)
}

func matching(e *syntax.Regexp) Generator[string] {
	var subs []Generator[string]
	for _, sub := range e.Sub {
		subs = append(subs, matching(sub))
	}
	switch e.Op {
	case syntax.OpEmptyMatch:
		return Just("")
	case syntax.OpLiteral:
		return Just(string(e.Rune))
	case syntax.OpCharClass:
		return class(e.Rune)
	case syntax.OpCapture:
		return subs[0]
	case syntax.OpConcat:
		return Custom(func(t *T) string {
			var b strings.Builder
			for _, sub := range subs {
				b.WriteString(sub.next(t))
			}
			return b.String()
		})
	case syntax.OpAlternate:
		return OneOf(subs...)
	case syntax.OpQuest:
		return repeated(subs[0], 0, 1)
	case syntax.OpStar:
		return repeated(subs[0], 0, mostRepeats)
	case syntax.OpPlus:
		return repeated(subs[0], 1, mostRepeats)
	case syntax.OpRepeat:
		most := e.Max
		if most < 0 {
			most = e.Min + mostRepeats
		}
		return repeated(subs[0], e.Min, most)
	default:
		panic(fmt.Sprintf("property: StringMatching does not know %s", e)) //nolint:forbidigo // A fault of the test.
	}
}

// class makes one rune of the pairs of first and last.
func class(pairs []rune) Generator[string] {
	var from []Generator[string]
	for i := 0; i < len(pairs); i += 2 {
		from = append(from, Map(IntRange(int(pairs[i]), int(pairs[i+1])), func(n int) string { return string(rune(n)) }))
	}
	return OneOf(from...)
}

func repeated(g Generator[string], least, most int) Generator[string] {
	return Map(SliceOfN(g, least, most), func(list []string) string { return strings.Join(list, "") })
}
