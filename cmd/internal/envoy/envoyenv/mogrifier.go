package envoyenv

import (
	"errors"
	"fmt"
	"regexp"
)

const mogrifierPrefix = "DOG_STATSD_MOGRIFIER_"

// mogrifierIDs returns the place for the names of mogrifiers. readMogrifiers reads the rest.
func mogrifierIDs(s *Settings) *[]string { return &s.Stats.mogrifierIDs }

// readMogrifiers reads the variables of each mogrifier, if they are used.
func (s *Settings) readMogrifiers(values map[string]string) []error {
	if !s.Stats.UseDogStatsd {
		return nil
	}
	var faults []error
	for _, id := range s.Stats.mogrifierIDs {
		m, found := readMogrifier(id, values)
		s.Stats.Mogrifiers, faults = append(s.Stats.Mogrifiers, m), append(faults, found...)
	}
	return faults
}

func readMogrifier(id string, values map[string]string) (m Mogrifier, faults []error) {
	name := func(field string) string { return mogrifierPrefix + id + "_" + field }
	fault := func(field string, err error) {
		faults = append(faults, fmt.Errorf("%.100s %s: %w", name(field), quote(values[name(field)]), err))
	}
	m = Mogrifier{ID: id, Pattern: values[name("PATTERN")], Name: values[name("NAME")]}
	if _, err := regexp.Compile(m.Pattern); err != nil || m.Pattern == "" {
		fault("PATTERN", errors.New("use a regular expression in Go's syntax"))
	}
	if m.Name == "" {
		fault("NAME", errors.New("use the new name of the counters, with $1 for the first group"))
	}
	var err error
	if m.Tags, err = pairs(values[name("TAGS")], ":", true); err != nil {
		fault("TAGS", err)
	}
	for key, value := range m.Tags {
		if key == "" || value == "" {
			fault("TAGS", errors.New("use a key and a value for each tag"))
			break
		}
	}
	return m, faults
}
