package front

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestLengths tells when a server warns that the leases of its parent, 15 s, are not longer than its own.
func TestLengths(t *testing.T) {
	t.Parallel()
	answers := func(length time.Duration, n int) (all [][]state.Lease) {
		for range n {
			all = append(all, []state.Lease{{Seq: 1, Length: length}, {Seq: 1, Length: length / 2}})
		}
		return all
	}
	for _, row := range []struct {
		what  string
		own   time.Duration
		given [][]state.Lease
		want  int
	}{
		{"a shorter one", 10 * time.Second, answers(15*time.Second, 50), 0},
		{"an equal one", 15 * time.Second, answers(15*time.Second, 50), 1},
		{"a longer one", 20 * time.Second, answers(15*time.Second, 50), 1},
		{"too few answers", 20 * time.Second, answers(15*time.Second, enoughAnswers-1), 0},
		{"a parent that begins with what is left", 10 * time.Second, append(answers(5*time.Second, 10), answers(15*time.Second, 20)...), 0},
		{"a parent that prolongs nothing", 10 * time.Second, answers(0, 50), 0},
		{"pushes", 10 * time.Second, [][]state.Lease{{{}}, {}, {{}}}, 0},
	} {
		l, warned := lengths{own: row.own}, 0
		for _, leases := range row.given {
			if longest, short := l.see(leases); short {
				if warned++; longest != 15*time.Second {
					t.Errorf("%s: the longest is %v", row.what, longest)
				}
			}
		}
		if warned != row.want {
			t.Errorf("%s: %d warnings, want %d", row.what, warned, row.want)
		}
	}
}

// TestLeafWithLongLeases: a leaf whose leases are as long as those of its parent says so.
func TestLeafWithLongLeases(t *testing.T) {
	config, log := root(), new(logs.Text)
	config.Refresh = 100 * time.Millisecond
	top := serve(t, Options{State: config})
	u := NewUplink(UplinkOptions{
		Servers: []string{top.at}, Credentials: insecure.NewCredentials(), Holder: HolderOf("secret", "leaf"),
		Log: log.Logger(),
	})
	config.Resources, config.Child = nil, true
	bottom := serve(t, Options{State: config, Up: u.Up})
	u.Start(bottom.Service)
	t.Cleanup(u.Close)
	below := bottom.open(t)
	below.send(claims("web", 1, 90_000, "db/orders"))
	until(t, "the warning", func() bool { return strings.Contains(log.String(), "set lease.length") })
}
