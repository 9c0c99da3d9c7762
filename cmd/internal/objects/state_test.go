package objects

import (
	"errors"
	"testing"
	"time"
)

// TestFailuresInTheLog: the log has the first failure, and then another one at most each minute.
func TestFailuresInTheLog(t *testing.T) {
	var s State
	for _, row := range []struct {
		second int
		err    string
		reach  bool
		logged bool
	}{
		{0, "from port 1", false, true},
		{1, "from port 2", false, false},
		{59, "from port 3", false, false},
		{61, "from port 4", false, true},
		{62, "from port 5", false, false},
		{200, "from port 5", false, false},
		{201, "from port 6", true, true},
	} {
		if row.reach {
			s.Reached(time.Unix(int64(row.second), 0))
		}
		if got := s.Failed(errors.New(row.err), time.Unix(int64(row.second), 0)); got != row.logged {
			t.Errorf("after %d s, %q: logged is %v, want %v", row.second, row.err, got, row.logged)
		}
	}
	if n := s.Get(); n.Failures != 7 || n.Failure != "from port 6" {
		t.Errorf("got %+v", n)
	}
}
