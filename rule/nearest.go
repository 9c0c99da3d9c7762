package rule

import "strings"

// Nearest returns the word that text probably means, for "did you mean" in messages.
// Nearest returns "" when more than a third of the letters differ, rounded up. Case is
// ignored.
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

// edits returns the Levenshtein distance: the letters to insert, delete or replace to
// change a into b. edits cuts a long a, because the words are short.
func edits(a, b string) int {
	a = a[:min(len(a), 64)]
	row := make([]int, len(b)+1) // row[j] is the distance of a[:i] and b[:j].
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
