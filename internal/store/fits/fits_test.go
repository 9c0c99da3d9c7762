package fits_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/fits"
)

// TestFits: the error of each store names the field that it cannot count. A plain limit has no
// error.
func TestFits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		policy headgate.Policy
		redis  string // the invalid field; empty for no error
		cached string
	}{
		{"plain", headgate.Policy{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 5, Per: time.Second}}, "", ""},
		{"a log", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 5, Per: time.Second}}, "", "algorithm"},
		{"a long log", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1 << 16, Per: time.Second}}, "count", "algorithm"},
		{"a period of nanoseconds", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: 1500}}, "period", ""},
	} {
		check(t, row.name+" in Redis", fits.Redis(row.policy), row.redis)
		check(t, row.name+" in Memcached", fits.Memcached(row.policy), row.cached)
	}
}

// check compares the invalid field of an error; an empty field means no error.
func check(t *testing.T, name string, got error, field string) {
	t.Helper()
	bad, found := errortype.As[*limit.PolicyError](got)
	if found != (field != "") || found && bad.Field != field || (got == nil) != (field == "") {
		t.Errorf("%s: got %v, want a fault of %q", name, got, field)
	}
}
