package etcd

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// memberRecord is the report of an instance.
type memberRecord struct {
	AtUS    int64 `json:"at_us"`
	Demand  int64 `json:"demand"`
	Over    int64 `json:"over_percent,omitempty"` // an instance of an earlier version writes this
	BoundUS int64 `json:"bound_us"`
}

// report is a decoded memberRecord.
type report struct {
	at     headgate.Instant // by the instance's own wall clock
	demand int64            // in units
	bound  time.Duration    // its Config.Propagation
}

func (r report) encode() string {
	return encode(memberRecord{AtUS: int64(r.at) / 1000, Demand: r.demand, BoundUS: r.bound.Microseconds()})
}

func parseReport(value []byte) (report, error) {
	var r memberRecord
	if err := decode(value, &r); err != nil {
		return report{}, err
	}
	bound := time.Duration(r.BoundUS) * time.Microsecond
	if r.AtUS < 0 || r.AtUS > maxTime || r.Demand < 0 ||
		r.BoundUS < 0 || r.BoundUS > maxTime || bound > maxPropagation {
		return report{}, fmt.Errorf("%w: a member's numbers are out of bounds", errRecord)
	}
	return report{at: headgate.Instant(r.AtUS * 1000), demand: min(r.Demand, maxDemand), bound: bound}, nil
}

// maxBrake bounds how long one instance can slow all of them down.
const maxBrake = time.Hour

// maxReason bounds the reason of a brake, in bytes.
const maxReason = 200

type brakeRecord struct {
	UntilUS int64  `json:"until_us"`
	Percent int    `json:"percent"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by"`
}

func (b BrakeInfo) encode() string {
	return encode(brakeRecord{UntilUS: b.Until.UnixMicro(), Percent: b.Percent, Reason: clean(b.Reason), By: b.By})
}

func parseBrake(value []byte) (*BrakeInfo, error) {
	var r brakeRecord
	if err := decode(value, &r); err != nil {
		return nil, err
	}
	if r.UntilUS < 0 || r.UntilUS > maxTime || r.Percent < 0 || r.Percent > 100 {
		return nil, fmt.Errorf("%w: a brake to %d %%: it is from 0 to 100, until a time", errRecord, r.Percent)
	}
	if err := checkName("by", r.By); err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	return &BrakeInfo{Until: time.UnixMicro(r.UntilUS), Percent: r.Percent, Reason: clean(r.Reason), By: r.By}, nil
}

// stronger reports whether a brake replaces another one: it has a lower percentage, or the same and
// a later end, or the other one has ended.
func (b BrakeInfo) stronger(than *BrakeInfo, now time.Time) bool {
	switch {
	case than == nil || !than.Until.After(now):
		return true
	case b.Percent != than.Percent:
		return b.Percent < than.Percent
	}
	return b.Until.After(than.Until)
}

// near reports that a brake ends within maxBrake, with a margin for clock differences.
func (b BrakeInfo) near(now time.Time) bool { return !b.Until.After(now.Add(maxBrake + time.Minute)) }

// clean makes an external text short and printable.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
	for len(text) > maxReason {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
