package rule

import "strings"

// Nearest gives the word that text was probably meant to be, for messages that say
// "did you mean", or "": a slip of the pen changes a third of a word, rounded up, at most.
// Letters count alike in either case.
func Nearest(text string, words []string) string {
	text = strings.ToLower(text)
	best, fewest := "", 0
	for _, word := range words {
		if d := edits(text, strings.ToLower(word)); d <= (len(word)+2)/3 && (best == "" || d < fewest) {
			best, fewest = word, d
		}
	}
	return best
}

// edits counts the letters that must be put in, taken out or replaced to make b
// of a (Levenshtein's distance). Words here are short; a longer a counts as cut.
func edits(a, b string) int {
	a = a[:min(len(a), 64)]
	row := make([]int, len(b)+1) // row[j] is the distance of a[:i] and b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
