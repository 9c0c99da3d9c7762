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

// TestLogOutOfReach: a long log that the user may not read is an error, and not taken
// for one that was lost, which would admit its limit anew.
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
	clock.Advance(time.Hour - 1500*time.Millisecond) // A quarter of the log has left, and must be read to know it.
	d, err := take(store, id, "k", patience)
	if err == nil && d.Remaining > 500 || err != nil && !strings.Contains(err.Error(), "docs/stores.md") {
		t.Errorf("of a log that may not be read %d remain, %v; want an error that says what to grant", d.Remaining, err)
	}
}
