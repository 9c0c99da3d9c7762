package envoyenv

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/sorting"
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
	var unknown []string
	for name := range values {
		switch {
		case slices.Contains(used, name) || strings.HasPrefix(name, mogrifierPrefix):
		case slices.Contains(known, name) || strings.HasPrefix(name, "OTEL_"):
			idle = append(idle, name)
		default:
			if near := nearName(name, known); near != "" {
				misspelled = append(misspelled, Note{[]string{name}, fmt.Sprintf("unknown variable: did you mean %s?", near)})
			} else if isOfReference(name) {
				unknown = append(unknown, name)
			}
		}
	}
	sorting.Func(misspelled, func(a, b Note) int { return strings.Compare(a.Names[0], b.Names[0]) })
	misspelled = misspelled[:min(len(misspelled), maxMisspelled)]
	notes := noteAbout(idle, "these variables are accepted and have no effect in Headgate")
	notes = append(notes, misspelled...)
	return append(notes, noteAbout(unknown, "these variables are not known, and have no effect")...)
}

// noteAbout gives one note about some variables, or none.
func noteAbout(names []string, text string) []Note {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []Note{{names[:min(len(names), maxNames)], text}}
}

// isOfReference reports whether an unknown name begins as those of envoyproxy/ratelimit alone do. Kubernetes sets
// variables for a service that is named redis or memcache.
func isOfReference(name string) bool {
	for _, prefix := range []string{"REDIS_", "MEMCACHE_", "XDS_CLIENT_", "CONFIG_GRPC_XDS_"} {
		if strings.HasPrefix(name, prefix) {
			return !ofKubernetes.MatchString(name)
		}
	}
	return false
}

// ofKubernetes matches the variables for a service.
var ofKubernetes = regexp.MustCompile(`_SERVICE_(HOST|PORT)(_|$)|_PORT$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_|$)`)

// notes gives the notes about values that cannot be followed.
func (s *Settings) notes(values map[string]string) []Note {
	var notes []Note
	if _, given := values[readOnlyVariable]; given && !s.CloseOnReadOnly {
		notes = append(notes, Note{[]string{readOnlyVariable}, "false has no effect: Headgate always closes a connection whose server " +
			"answers READONLY, and dials the address again"})
	}
	if s.HealthByRedis && s.Backend != "redis" {
		notes = append(notes, Note{[]string{healthVariable}, "true has no effect with BACKEND_TYPE=memcache: the health does not " +
			"follow Memcached"})
	}
	return notes
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
