package acceptance

import (
	"fmt"
	"testing"
	"time"
)

// idleConfigured takes the number of connections twice.
const idleConfigured = `version: 1
max_memory: 16MiB
rules:
  - {name: user, match: {domain: shop, descriptors: {user: "*"}}, key: [descriptor:user], limits: [1000000/h]}
server:
  grpc: "off"
  http: {address: "127.0.0.1:0", max_connections: %[1]d}
  resp: {address: "127.0.0.1:0", max_connections: %[1]d}
` + adminAnywhere

// TestServerWaysIdle has 300 clients that ask once over HTTP and the Redis protocol, and stay.
func TestServerWaysIdle(t *testing.T) { idleWays(t, 300) }

// idleWays opens connections that ask once and stay, and logs the memory of each. A connection that asks nothing
// more holds less than a full one of the Redis protocol.
func idleWays(t *testing.T, connections int) {
	t.Helper()
	for _, w := range otherWays() {
		t.Run(w.name, func(t *testing.T) { w.idle(t, connections) }) // Its end closes the connections.
	}
}

func (w *way) idle(t *testing.T, connections int) {
	t.Helper()
	i := launchServer(t, file(t, fmt.Sprintf(idleConfigured, connections+50)))
	if err := w.open(t, w.at(i), "first")(t.Context(), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	before, resident := inUse(t, i), i.uses(t).resident
	askers := make([]asker, connections)
	began := time.Now()
	each(connections, func(n int) {
		askers[n] = w.open(t, w.at(i), "idle")
		if err := askers[n](t.Context(), n, 0, 0); err != nil {
			t.Errorf("%s: connection %d: %v: raise the limit of open files (ulimit -n)", w.name, n, err)
		}
	})
	elapsed := time.Since(began).Round(time.Millisecond)
	held, grown := inUse(t, i)-before, i.uses(t).resident-resident
	t.Logf("%s: %d connections in %v hold %.1f KiB each, and %.1f KiB of resident memory", w.name, connections, elapsed,
		held/1024/float64(connections), float64(grown)/1024/float64(connections))
	if files := i.uses(t).files; files < connections {
		t.Errorf("%s: %d files are open, want %d: connections were closed", w.name, files, connections)
	}
	const most = 64 << 10
	if held > most*float64(connections) {
		t.Errorf("%s: an idle connection holds %.0f bytes, want %d at most", w.name, held/float64(connections), most)
	}
	each(connections, func(n int) {
		if err := askers[n](t.Context(), n, 1, 0); err != nil {
			t.Errorf("%s: the second request of connection %d: %v", w.name, n, err)
		}
	})
}
