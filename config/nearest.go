package config

import "strings"

// nearest gives the word that text was probably meant to be, or "": a slip of the
// pen changes a third of a word at most.
func nearest(text string, words []string) string {
	text = strings.ToLower(text[:min(len(text), 64)])
	best, fewest := "", 0
	for _, word := range words {
		if d := edits(text, strings.ToLower(word)); d <= (len(word)+1)/3 && (best == "" || d < fewest) {
			best, fewest = word, d
		}
	}
	return best
}

// edits counts the letters to put in, take out or replace to make b of a.
func edits(a, b string) int {
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
