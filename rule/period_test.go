package rule

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
)

// TestCalendarPeriods parses the periods of the calendar. Limit.String is the inverse.
func TestCalendarPeriods(t *testing.T) {
	for text, want := range map[string]headgate.Limit{
		"200/month": {Count: 200, Calendar: headgate.Month}, "50/day": {Count: 50, Calendar: headgate.Day},
		"9/week": {Count: 9, Calendar: headgate.Week}, "0/year": {Calendar: headgate.Year},
	} {
		got, err := ParseLimit(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseLimit(%s) = %+v (%s), %v, want %+v", text, got, got, err, want)
		}
	}
}

// TestPeriodsWrittenOut checks the suggested limit for periods with a unit written out.
func TestPeriodsWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"100/sec": "write 100/s", "100/seconds": "write 100/s", "5/2minutes": "write 5/2m", "9/Hour": "write 9/h", "9/Day": "write 9/day", "9/2days": "write 9/2d",
		"9/1week": "write 9/7d", "9/Weeks": "write 9/week", "9/months": "write 9/month", "9/y": "write 9/year", "9/10msec": "write 9/10ms", "9/fortnight": "period must be like 2s, 10m, 1h or 1d", "9/2weeks": "period must be like 2s, 10m, 1h or 1d",
	} {
		_, err := ParseLimit(text)
		if bad, found := errortype.As[*ParseError](err); !found || bad.Fix != want {
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
}
