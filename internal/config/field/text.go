package field

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// SizeUnit is a unit of sizes: its word in a configuration, and its bytes.
type SizeUnit struct {
	Word  string
	Bytes int64
}

// SizeUnits returns the units of sizes, the greatest first.
func SizeUnits() []SizeUnit {
	return []SizeUnit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

// FormatSize writes a size in the greatest unit that shows it exactly.
func FormatSize(n int64) string {
	for _, unit := range SizeUnits() {
		if n >= unit.Bytes && n%unit.Bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.Bytes, unit.Word)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// Counted writes a number and what it counts: 1 rule, 2 rules, 2 entries, 2 matches. noun is the singular of a regular noun.
func Counted[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	const vowels = "aeiou"
	switch last := len(noun) - 1; {
	case n == 1:
	case last > 0 && noun[last] == 'y' && strings.IndexByte(vowels, noun[last-1]) < 0:
		noun = noun[:last] + "ies"
	case strings.HasSuffix(noun, "ch") || strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x"):
		noun += "es"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// FormatDuration writes a duration as configurations do: 10m, not 10m0s.
func FormatDuration(d time.Duration) string { return headgate.Limit{Per: d}.Period() }

// FormatLimit writes the limit of a policy, and its burst if the policy sets one.
func FormatLimit(p headgate.Policy) string {
	text := p.Limit.String()
	if p.Limit.Burst > 0 {
		text += fmt.Sprintf(" burst %d", p.Limit.Burst)
	}
	return text
}
