package documents

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// maxConnections is the number of connections of one process to one server in docs/stores.md.
const maxConnections = 1

// TestConnections checks that many concurrent calls with different keys share few connections.
func TestConnections(t *testing.T) {
	if !strings.Contains(strings.Join(page(t), "\n"), "at most one connection to a Redis") {
		t.Errorf("%s does not state the number of connections", storesPage)
	}
	server := testserver.Start(t)
	store := openRedis(t, single(server), "", "")
	run(t, store, jobs()[0])
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for n := range 10 {
				if _, err := decide(t, store, fmt.Sprint(i, n), 1, limited(headgate.TokenBucket)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	open := strings.Count(server.CLI("CLIENT", "LIST", "TYPE", "normal"), "id=") - 1 // Without the connection of redis-cli itself.
	t.Logf("%d connections", open)
	if open > maxConnections {
		t.Errorf("200 callers opened %d connections, want at most %d", open, maxConnections)
	}
}
