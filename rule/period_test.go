package rule

import (
	"errors"
	"testing"
)

// TestPeriodsWrittenOut checks the suggested limit for periods with a unit written out.
func TestPeriodsWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"100/sec": "write 100/s", "100/seconds": "write 100/s", "5/2minutes": "write 5/2m", "9/Hour": "write 9/h", "9/day": "write 9/d",
		"9/week": "write 9/7d", "9/10msec": "write 9/10ms", "9/fortnight": "period must be like 2s, 10m, 1h or 1d", "9/2weeks": "period must be like 2s, 10m, 1h or 1d",
	} {
		_, err := ParseLimit(text)
		if bad, found := errors.AsType[*ParseError](err); !found || bad.Fix != want {
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
}
