package state

import (
	"fmt"
	"slices"
)

// first returns the band of claims without one.
func (c Caller) first() int {
	if len(c.Bands) == 0 {
		return 1
	}
	return c.Bands[0]
}

// allows reports whether a claim may name the band.
func (c Caller) allows(band int) bool {
	return band == 0 || band == c.first() || slices.Contains(c.Bands, band)
}

// check returns an *Error if the report has a field out of range, or one that the caller may not
// use.
func check(rights Caller, report *Report) error {
	switch {
	case report.Holder == "" || len(report.Holder) > MaxName:
		return invalid("holder", "%d bytes: use 1 to %d", len(report.Holder), MaxName)
	case report.Seq == 0:
		return invalid("seq", "0: count reports from 1")
	case len(report.Claims) > MaxClaims || len(report.Acks) > MaxClaims:
		return invalid("claims", "%d claims and %d acks: send at most %d", len(report.Claims), len(report.Acks), MaxClaims)
	}
	var seen map[string]struct{}
	if len(report.Claims) > 1 {
		seen = make(map[string]struct{}, len(report.Claims))
	}
	for i := range report.Claims {
		c := &report.Claims[i]
		if err := checkClaim(rights, c); err != nil {
			err.Field = fmt.Sprintf("claims[%d].%s", i, err.Field)
			return err
		}
		if _, twice := seen[c.Resource]; twice {
			return invalid(fmt.Sprintf("claims[%d].resource", i), "%q is there twice: send one claim of each resource", c.Resource)
		}
		if seen != nil {
			seen[c.Resource] = struct{}{}
		}
	}
	for i, a := range report.Acks {
		if a.Holds < 0 {
			return invalid(fmt.Sprintf("acks[%d].holds", i), "%d is negative", a.Holds)
		}
	}
	return nil
}

func checkClaim(rights Caller, c *Claim) *Error {
	switch {
	case c.Resource == "" || len(c.Resource) > MaxName:
		return invalid("resource", "%d bytes: use 1 to %d", len(c.Resource), MaxName)
	case c.Wants < 0 || c.Wants > MaxAmount:
		return invalid("wants", "%d: use 0 to %d", c.Wants, int64(MaxAmount))
	case c.Holds < 0 || c.Holds > MaxAmount || c.Left < 0:
		return invalid("holds", "%d for %v: use 0 to %d for a time of at least 0", c.Holds, c.Left, int64(MaxAmount))
	case c.Spent < 0 || c.Refused < 0 || c.Refused > c.Spent:
		return invalid("spent", "%d units, %d of them refused: use 0 or more, and not more refused ones", c.Spent, c.Refused)
	case !rights.allows(c.Band):
		return &Error{Code: Forbidden, Field: "band", Text: fmt.Sprintf("%d is not a band of this caller: use 0", c.Band)}
	case !rights.Server && (len(c.Curve) > 0 || c.Holders != 0 || c.Learning):
		return &Error{Code: Forbidden, Field: "curve", Text: "this caller is not a server: add server: true to its entry in " +
			"lease.holders; a caller without a token or a certificate has no name, and no entry"}
	case len(c.Curve) > MaxBuckets || c.Holders < 0 || c.Holders > 1<<32:
		return invalid("curve", "%d buckets for %d holders: use at most %d", len(c.Curve), c.Holders, MaxBuckets)
	}
	for _, b := range c.Curve {
		if b.Band < 1 || b.Band > MaxBands || b.Weight < 1 || b.Weight > MaxBucketWeight || b.Wants < 1 || b.Wants > MaxAmount {
			return invalid("curve", "bucket %+v is out of range", b)
		}
	}
	return nil
}

func invalid(field, format string, args ...any) *Error {
	return &Error{Code: Invalid, Field: field, Text: fmt.Sprintf(format, args...)}
}
