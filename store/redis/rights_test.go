package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestLogOutOfReach: the user may not read a long log. The decision is an error. A log that
// looked lost would admit its whole limit again.
func TestLogOutOfReach(t *testing.T) {
	server := testserver.StartACL(t, "limits", "secret", "~hg3:*", "+@all")
	clock := storetest.NewClock()
	store := open(t, redis.Config{
		Client: rueidis.ClientOption{InitAddress: []string{server.Addr}, Username: "limits", Password: "secret"}, Clock: clock.Now,
	})
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2000, Per: time.Hour}})
	for range 2000 {
		clock.Advance(time.Millisecond)
		if d, err := take(store, id, "k", patience); err != nil || d.Verdict != headgate.Allow {
			t.Fatal(d.Verdict, err)
		}
	}
	server.CLI("ACL", "SETUSER", "limits", "-lindex")
	clock.Advance(time.Hour - 1500*time.Millisecond) // A quarter of the log has expired. The script must read the log to know that.
	d, err := take(store, id, "k", patience)
	if err == nil && d.Remaining > 500 || err != nil && !strings.Contains(err.Error(), "docs/stores.md") {
		t.Errorf("decision on an unreadable log: got %d units remaining and error %v, want an error that names the missing right", d.Remaining, err)
	}
}
