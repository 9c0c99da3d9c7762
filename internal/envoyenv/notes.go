package envoyenv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/rule"
)

// Note is a line for the log about variables that have no effect.
type Note struct {
	// Names are the variables, sorted.
	Names []string
	// Text says why they have no effect, and what to do.
	Text string
}

const (
	// maxNames bounds the variables in a note.
	maxNames = 100
	// maxMisspelled bounds the notes about misspelled names.
	maxMisspelled = 20
)

// notesOf returns a note about all variables without effect, and one for each misspelled name.
func notesOf(values map[string]string, all []variable) []Note {
	var known, used, idle []string
	for _, v := range all {
		known = append(known, v.name)
		if v.set != nil {
			used = append(used, v.name)
		}
	}
	var misspelled []Note
	for name := range values {
		switch {
		case slices.Contains(used, name) || strings.HasPrefix(name, mogrifierPrefix):
		case slices.Contains(known, name) || strings.HasPrefix(name, "OTEL_"):
			idle = append(idle, name)
		default:
			if near := nearName(name, known); near != "" {
				misspelled = append(misspelled, Note{[]string{name}, fmt.Sprintf("unknown variable: did you mean %s?", near)})
			}
		}
	}
	slices.SortFunc(misspelled, func(a, b Note) int { return strings.Compare(a.Names[0], b.Names[0]) })
	misspelled = misspelled[:min(len(misspelled), maxMisspelled)]
	if len(idle) == 0 {
		return misspelled
	}
	slices.Sort(idle)
	return append([]Note{{idle[:min(len(idle), maxNames)], "these variables are accepted and have no effect in Headgate"}}, misspelled...)
}

// nearName returns the known name that name may be a typo of, or "". A typo has the first word of a
// known name, and differs in underscores only, or has a near word in every place. Other programs'
// variables may begin with the same word: Kubernetes sets REDIS_SERVICE_HOST for a service named redis.
func nearName(name string, known []string) string {
	var near []string
	for _, word := range known {
		if strings.ReplaceAll(name, "_", "") == strings.ReplaceAll(word, "_", "") {
			return word
		}
		if nearWords(strings.Split(name, "_"), strings.Split(word, "_")) {
			near = append(near, word)
		}
	}
	if len(near) == 0 {
		return ""
	}
	if best := rule.Nearest(name, near); best != "" {
		return best
	}
	return near[0]
}

// nearWords reports whether two names of two or more words have the same first word, and near
// words in every other place.
func nearWords(typed, known []string) bool {
	if len(typed) != len(known) || len(known) < 2 || typed[0] != known[0] {
		return false
	}
	for i := range typed {
		if typed[i] != known[i] && rule.Nearest(typed[i], known[i:i+1]) == "" {
			return false
		}
	}
	return true
}
