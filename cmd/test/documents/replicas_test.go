package documents

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestMasterAlone checks the page's settings for masters with sentinels. A master that has lost its
// replicas refuses writes, and the store stops using it.
func TestMasterAlone(t *testing.T) {
	server := testserver.Start(t)
	c := single(server)
	c.Breaker = breaker.Config{Failures: 3, Probe: time.Hour, MaxProbe: time.Hour}
	store := openRedis(t, c, "", "")
	run(t, store, jobs()[0])
	set := 0
	for _, line := range page(t) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "min-replicas-") {
			server.CLI("CONFIG", "SET", name, value)
			set++
		}
	}
	if set != 2 {
		t.Fatalf("%s has %d settings of min-replicas, want 2", storesPage, set)
	}
	for i := range 3 {
		if _, err := decide(t, store, fmt.Sprint(i), 1, limited(headgate.TokenBucket)); err == nil || !strings.Contains(err.Error(), "NOREPLICAS") {
			t.Errorf("a master without replicas: %v", err)
		}
	}
	if _, err := decide(t, store, "a", 1, limited(headgate.TokenBucket)); !errors.Is(err, headgate.ErrUnavailable) {
		t.Errorf("after three failures: %v, want the server to be left alone", err)
	}
	if keys := server.CLI("DBSIZE"); keys != "1" {
		t.Errorf("the server has %s keys, want only the earlier key", keys)
	}
}
