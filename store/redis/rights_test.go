package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestLogOutOfReach: a long log that the user may not read is an error, and not taken
// for one that was lost, which would admit its limit anew.
func TestLogOutOfReach(t *testing.T) {
	server := testserver.StartACL(t, "limits", "secret", "~hg2:*", "+@all")
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}, Username: "limits", Password: "secret"}})
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	for range 1000 {
		if d, err := take(store, id, "k", patience); err != nil || d.Verdict != headgate.Allow {
			t.Fatal(d.Verdict, err)
		}
	}
	server.CLI("ACL", "SETUSER", "limits", "-lindex")
	d, err := take(store, id, "k", patience)
	if err == nil && d.Verdict == headgate.Allow || err != nil && !strings.Contains(err.Error(), "docs/stores.md") {
		t.Errorf("one more of a full log: %v, %v; want an error that says what to grant", d.Verdict, err)
	}
}
