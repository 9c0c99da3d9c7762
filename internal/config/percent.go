package config

import (
	"fmt"
	"strconv"
	"strings"
)

// percent reads a whole percentage from least to most. A preset of 0 means that the field has no default.
func (s *section) percent(name string, into *int, least, most int) {
	preset := ""
	if *into > 0 {
		preset = strconv.Itoa(*into) + "%"
	}
	s.outline.field(name).written(preset, percentPattern)
	if v, ok := s.scalar(name, "a percentage"); ok {
		s.percentOf(v, into, least, most)
	}
}

// percentOf reads the percentage of a value.
func (s *section) percentOf(v value, into *int, least, most int) {
	const fix = "write it like 80%"
	digits, signed := strings.CutSuffix(v.text(), "%")
	n, err := strconv.Atoi(digits)
	switch {
	case digits == "" || strings.Trim(digits, "0123456789") != "":
		s.fault(v, "must be a whole percentage, not "+quote(v.text()), fix)
	case !signed:
		s.faultAt(v, len(digits), "percentage "+quote(v.text())+" has no %", "write "+quote(v.text()+"%"))
	case err != nil || n < least || n > most:
		s.fault(v, quote(v.text())+" is out of range", fmt.Sprintf("use %d%% to %d%%", least, most))
	default:
		*into = n
	}
}
