package rule

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
)

func TestParseLimit(t *testing.T) {
	for _, c := range []struct {
		text string
		want headgate.Limit
	}{
		{"500/2s", headgate.Limit{Count: 500, Per: 2 * time.Second}},
		{"100/m", headgate.Limit{Count: 100, Per: time.Minute}}, // a unit without a number means 1
		{"10000/1m", headgate.Limit{Count: 10000, Per: time.Minute}},
		{"5/1d", headgate.Limit{Count: 5, Per: 24 * time.Hour}},
		{"5/d", headgate.Limit{Count: 5, Per: 24 * time.Hour}},
		{"7/250ms", headgate.Limit{Count: 7, Per: 250 * time.Millisecond}},
		{"7/us", headgate.Limit{Count: 7, Per: time.Microsecond}},
		{"7/1.5µs", headgate.Limit{Count: 7, Per: 1500 * time.Nanosecond}},
		{"1000/1h30m", headgate.Limit{Count: 1000, Per: 90 * time.Minute}},
		{"1/1d12h", headgate.Limit{Count: 1, Per: 36 * time.Hour}},
		{"1/1.5d", headgate.Limit{Count: 1, Per: 36 * time.Hour}},
		{"0/s", headgate.Limit{Count: 0, Per: time.Second}}, // a valid limit that admits no request
		{"007/s", headgate.Limit{Count: 7, Per: time.Second}},
		{"9007199254740991/367d", headgate.Limit{Count: headgate.MaxUnits, Per: 367 * 24 * time.Hour}},
	} {
		got, err := ParseLimit(c.text)
		if err != nil || got != c.want {
			t.Errorf("ParseLimit(%q) = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestParseLimitTeaches(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, `rule: limit "" has no period: limit must be like 500/2s, 100/m or 10000/1d`},
		{"500", 3, `rule: limit "500" has no period: limit must be like 500/2s, 100/m or 10000/1d`},
		{"100 per minute", 14, `rule: limit "100 per minute" has no period: limit must be like 500/2s, 100/m or 10000/1d`},
		{"/2s", 0, `rule: limit has no count: limit must be like 500/2s, 100/m or 10000/1d`},
		{"-5/s", 0, `rule: count "-5" is not a whole number: count must be digits only, like 500`},
		{"1_000/s", 1, `rule: count "1_000" is not a whole number: count must be digits only, like 500`},
		{"1.5/s", 1, `rule: count "1.5" is not a whole number: count must be digits only, like 500`},
		{"500 /s", 3, `rule: count "500 " is not a whole number: count must be digits only, like 500`},
		{"9007199254740992/s", 0, `rule: count "9007199254740992" is too large: use 0 to 9007199254740991`},
		{"99999999999999999999/s", 0, `rule: count "99999999999999999999" is too large: use 0 to 9007199254740991`},
		{"500/", 4, `rule: period "" is empty: period must be like 2s, 10m, 1h or 1d`},
		{"500/2x", 5, `rule: period "2x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d`},
		{"500/2", 5, `rule: period "2" has no unit after "2": period must be like 2s, 10m, 1h or 1d`},
		{"500/minute", 4, `rule: period "minute" has no number before "minute": write 500/m`},
		{"500/-2s", 4, `rule: period "-2s" has no number before "-2s": period must be like 2s, 10m, 1h or 1d`},
		{"500/2s/3s", 5, `rule: period "2s/3s" has the unknown unit "s/": period must be like 2s, 10m, 1h or 1d`},
		{"500/1h30", 8, `rule: period "1h30" has no unit after "30": period must be like 2s, 10m, 1h or 1d`},
		{"500/2500ns", 8, `rule: period "2500ns" has the unknown unit "ns": period must be like 2s, 10m, 1h or 1d`},
		{"500/0s", 4, `rule: period "0s" is out of range: use 1µs to 367d`},
		{"500/368d", 4, `rule: period "368d" is out of range: use 1µs to 367d`},
		{"500/200000d", 4, `rule: period "200000d" is too long: use at most 106751d`},
		{"1/\x00" + string(make([]byte, 100)), 2, `rule: period "` + strings.Repeat(`\x00`, 48) + `"... has no number before "` + strings.Repeat(`\x00`, 48) + `"...: period must be like 2s, 10m, 1h or 1d`},
	} {
		_, err := ParseLimit(c.text)
		bad, ok := errortype.As[*ParseError](err)
		if !ok || bad.Offset != c.offset || bad.Error() != c.want {
			t.Errorf("ParseLimit(%q):\n got %v\nwant %s, at %d", c.text, err, c.want, c.offset)
		}
	}
}

// The shortest and the longest period equal the ones of package limit. A limit that
// parses is therefore not refused later for its period.
func TestPeriodsAreThoseOfTheAlgorithms(t *testing.T) {
	if shortestPeriod != limit.MinPer || longestPeriod != limit.MaxPer {
		t.Errorf("periods are %s to %s here, and %s to %s in package limit", shortestPeriod, longestPeriod, limit.MinPer, limit.MaxPer)
	}
}

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"0", 0}, // 0 needs no unit, as in Go
		{"0s", 0},
		{"20ms", 20 * time.Millisecond},
		{"1h", time.Hour},
		{"24h", 24 * time.Hour},
		{"30d", 30 * 24 * time.Hour},
		{"1d1h1m1s1ms1us1ns", 25*time.Hour + time.Minute + time.Second + time.Millisecond + time.Microsecond + 1},
		{"1s1s", 2 * time.Second}, // as in Go
		{".5s", 500 * time.Millisecond},
		{"1.s", time.Second},
		{"0.1d", 2*time.Hour + 24*time.Minute},
		{"0.9999999999s", 999999999}, // cut at the nanosecond
		{"0.33333333333333333333333333333333d", 8*time.Hour - 1},
		{"0.12345678901234567890123456789012d", 10666666570666}, // more digits than any integer type can have
		{"9223372036854775807ns", math.MaxInt64},
		{"106751d23h47m16.854775807s", math.MaxInt64},
	} {
		got, err := ParseDuration(c.text)
		if err != nil || got != c.want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestParseDurationTeaches(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, `rule: duration "" is empty: duration must be like 2s, 10m, 1h or 1d`},
		{"2", 1, `rule: duration "2" has no unit after "2": duration must be like 2s, 10m, 1h or 1d`},
		{"s", 0, `rule: duration "s" has no number before "s": duration must be like 2s, 10m, 1h or 1d`},
		{".s", 0, `rule: duration ".s" has no number before ".s": duration must be like 2s, 10m, 1h or 1d`},
		{"2 s", 1, `rule: duration "2 s" has the unknown unit " s": duration must be like 2s, 10m, 1h or 1d`},
		{"1m2..5s", 4, `rule: duration "1m2..5s" has no unit after "2.": duration must be like 2s, 10m, 1h or 1d`},
		{"9223372036854775808ns", 0, `rule: duration "9223372036854775808ns" is too long: use at most 106751d`},
		{"1d9223372036854775807ns", 2, `rule: duration "1d9223372036854775807ns" is too long: use at most 106751d`},
		{"9223372036.9s", 0, `rule: duration "9223372036.9s" is too long: use at most 106751d`},
		{"18446744073709551617ns", 0, `rule: duration "18446744073709551617ns" is too long: use at most 106751d`},
		{"99999999999999999999999d", 0, `rule: duration "99999999999999999999999d" is too long: use at most 106751d`},
	} {
		_, err := ParseDuration(c.text)
		bad, ok := errortype.As[*ParseError](err)
		if !ok || bad.Offset != c.offset || bad.Error() != c.want {
			t.Errorf("ParseDuration(%q):\n got %v\nwant %s, at %d", c.text, err, c.want, c.offset)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{"500/2s", "100/m", "5/1d", "1000/1h30m", "7/1.5µs", "9007199254740991/367d", "1/9223372036854775807s", "/", "1/.5.5s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLimit(text)
		if err != nil {
			checkOffset(t, text, err)
			return
		}
		again, err := ParseLimit(l.String())
		if err != nil || again != l {
			t.Errorf("%q gives %v, and parsing the result gives %v, %v", text, l, again, err)
		}
		if _, err := limit.Compile(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l}); err != nil {
			t.Errorf("parsing %q: accepted, but package limit refuses the result: %v", text, err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"0", "1h30m", "1.5d", "0.000000001s", "2562047h47m16.854775807s", "1..s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			checkOffset(t, text, err)
			return
		}
		if d < 0 {
			t.Fatalf("%q is negative: %v", text, d)
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q gives %v, and parsing the result gives %v, %v", text, d, again, err)
		}
	})
}

// ParseDuration agrees with Go for texts without a sign. Both cut off fractions of a
// nanosecond.
func FuzzParseDurationAsGo(f *testing.F) {
	for _, text := range []string{"0", "1h30m", "0.1us", "0.3333333333333333333h", "2562047h47m16.854775807s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := time.ParseDuration(text)
		if err != nil || text[0] == '-' || text[0] == '+' {
			return
		}
		got, err := ParseDuration(text)
		if cut := time.Duration(len(text)); err != nil || max(got, want)-min(got, want) > cut {
			t.Errorf("%q is %v, %v here and %v in Go", text, got, err, want)
		}
	})
}

// checkOffset checks that the offset of the error lies within the text.
func checkOffset(t *testing.T, text string, err error) {
	t.Helper()
	bad, ok := errortype.As[*ParseError](err)
	if !ok || bad.Offset < 0 || bad.Offset > len(text) || bad.Problem == "" || bad.Fix == "" {
		t.Errorf("parsing %q: got error %#v with a wrong offset", text, err)
	}
}
