package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are the words for sizes, the greatest first.
var sizeUnits = [...]struct {
	word  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// size reads a number of bytes from least to most.
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
		s.fault(v, "size "+quote(v.text())+" is out of range", fmt.Sprintf("use %s to %s", formatSize(least), formatSize(most)))
	default:
		*into = n
	}
}

// parseSize gives the bytes of "256MiB", at most the greatest int64; problem is
// what is wrong at offset, or "".
func parseSize(text string) (n int64, offset int, problem string) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	switch {
	case digits == 0:
		return 0, 0, "has no number"
	case digits == len(text):
		return 0, digits, "has no unit"
	}
	for _, unit := range sizeUnits {
		if text[digits:] != unit.word {
			continue
		}
		n, err := strconv.ParseInt(text[:digits], 10, 64)
		if err != nil || n > math.MaxInt64/unit.bytes {
			return math.MaxInt64, 0, ""
		}
		return n * unit.bytes, 0, ""
	}
	return 0, digits, "has the unknown unit " + quote(text[digits:])
}

// formatSize writes a size in the greatest unit that shows it exactly.
func formatSize(n int64) string {
	for _, unit := range sizeUnits {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.bytes, unit.word)
		}
	}
	return fmt.Sprintf("%dB", n)
}
