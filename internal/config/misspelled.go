package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/headgate/headgate/rule"
)

// variablePrefix begins the name of each environment variable that sets a field.
const variablePrefix = "HEADGATE_"

// MisspelledVariables returns a warning for each unknown variable of environ (see os.Environ)
// with a name near a known one. Without the warning, a typo would silently have no effect. The known
// names are those of settings, and others: variables that the program itself reads.
//
// A name is near if each of its words is near the word in the same place. It is also near if only
// underscores differ, or if it leaves out the sections of one known name. HEADGATE_PORT is not
// near: Kubernetes sets such variables for a service named headgate.
func MisspelledVariables(environ []string, others ...string) []string {
	var unknown []string
	for _, variable := range environ {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, variablePrefix) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	known := append(variables(), others...)
	var warnings []string
	for _, name := range unknown {
		if slices.Contains(known, name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			continue
		}
		if near := nearVariable(name, known); near != "" {
			warnings = append(warnings, fmt.Sprintf("%s is not known: did you mean %s?", name, near))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// nearVariable returns the nearest of the known names that name may be a typo of, or "".
func nearVariable(name string, known []string) string {
	var alike, longer []string
	for _, word := range known {
		if sameButUnderscores(name, word) {
			return word
		}
		if nearWords(name, word) {
			alike = append(alike, word)
		}
		if rest := strings.TrimPrefix(name, variablePrefix); rest != "" && strings.HasSuffix(word, "_"+rest) {
			longer = append(longer, word)
		}
	}
	if len(alike) == 0 && len(longer) == 1 {
		return longer[0]
	}
	return rule.Nearest(name, alike)
}

func sameButUnderscores(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", ""), strings.ReplaceAll(b, "_", ""))
}

// nearWords reports whether two names have the same number of words, and each word is near the
// word in the same place.
func nearWords(a, b string) bool {
	typed, known := strings.Split(a, "_"), strings.Split(b, "_")
	if len(typed) != len(known) {
		return false
	}
	for i := range typed {
		if rule.Nearest(typed[i], known[i:i+1]) == "" {
			return false
		}
	}
	return true
}

// variables lists the environment variables of all settings, from the declarations of the readers.
func variables() []string {
	all, err := readOutline()
	if err != nil {
		return nil // The sample is part of the code. TestSchema checks that it is valid.
	}
	return all.variables(nil)
}

// variables appends the variables of the fields of a mapping, in order.
func (o *outline) variables(to []string) []string {
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		field := o.fields[name]
		if field.variable != "" {
			to = append(to, field.variable)
		}
		to = field.variables(to)
	}
	return to
}
