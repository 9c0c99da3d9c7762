package documents

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// mostConnections is what docs/stores.md says that one process opens to one server.
const mostConnections = 1

// TestConnections: however many ask at once, under whatever keys, few connections carry all.
func TestConnections(t *testing.T) {
	if !strings.Contains(strings.Join(page(t), "\n"), "at most one connection to a Redis") {
		t.Errorf("%s does not say how many connections there are", storesPage)
	}
	server := testserver.Start(t)
	store := openRedis(t, single(server), "", "")
	run(t, store, jobs()[0])
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for n := range 10 {
				if _, err := ask(t, store, fmt.Sprint(i, n), 1, limited(headgate.TokenBucket)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	open := strings.Count(server.CLI("CLIENT", "LIST", "TYPE", "normal"), "id=") - 1 // That of the question itself.
	t.Logf("%d connections", open)
	if open > mostConnections {
		t.Errorf("200 callers have opened %d connections, want at most %d", open, mostConnections)
	}
}
