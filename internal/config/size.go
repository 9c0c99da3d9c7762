package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

// size reads a size in bytes, from least to most.
func (s *section) size(name string, into *int64, least, most int64) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).size(*into)
	v, ok := s.scalar(name, "a size")
	if !ok {
		return
	}
	n, offset, problem := parseSize(v.text())
	switch {
	case problem != "":
		s.faultAt(v, offset, "size "+quote(v.text())+" "+problem, "write it like 256MiB; the units are B, KiB, MiB, GiB and TiB")
	case n < least || n > most:
		s.fault(v, "size "+quote(v.text())+" is out of range", fmt.Sprintf("use %s to %s", field.FormatSize(least), field.FormatSize(most)))
	default:
		*into = n
	}
}

// parseSize returns the bytes of a text like "256MiB", at most math.MaxInt64. problem says what is
// wrong at offset, or is "".
func parseSize(text string) (n int64, offset int, problem string) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	switch {
	case digits == 0:
		return 0, 0, "has no number"
	case digits == len(text):
		return 0, digits, "has no unit"
	}
	for _, unit := range field.SizeUnits() {
		if text[digits:] != unit.Word {
			continue
		}
		n, err := strconv.ParseInt(text[:digits], 10, 64)
		if err != nil || n > math.MaxInt64/unit.Bytes {
			return math.MaxInt64, 0, ""
		}
		return n * unit.Bytes, 0, ""
	}
	return 0, digits, "has the unknown unit " + quote(text[digits:])
}

// ParseSize reads a size of a command line, such as 256MiB.
func ParseSize(text string) (int64, error) {
	n, _, problem := parseSize(text)
	if problem != "" {
		return 0, fmt.Errorf("size %q %s: write it like 256MiB; the units are B, KiB, MiB, GiB and TiB", text, problem)
	}
	return n, nil
}
