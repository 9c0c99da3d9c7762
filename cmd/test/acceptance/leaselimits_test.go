package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/etcd"
)

const limitedRoot = `version: 1
server: {grpc: %q, http: off}
lease:
  length: 3200ms
  refresh: 100ms
  limits: {etcd: [%q]}
  resources: [{match: "m*", capacity: 500/s}, {match: "db/*", capacity: 7/s}]
`

// leasedCapacity gives the capacity of a resource, as headgate ctl leases prints it.
func leasedCapacity(t *testing.T, i *instance, resource string) (capacity float64) {
	t.Helper()
	_, stdout, _ := call(t, "ctl", "leases", resource, "--json", "--admin", i.Admin)
	var found struct {
		Resources []struct {
			Capacity float64 `json:"capacity"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || len(found.Resources) != 1 {
		return -1
	}
	return found.Resources[0].Capacity
}

// TestLeaseLimits: a limit of headgate ctl limit wins over the capacity in the file of the root, at its start
// and later. A limit that is no rate in thousandths is refused. While etcd is gone, the last value stays.
func TestLeaseLimits(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	ctl := limits(t, "--etcd", server.Addr)
	set := func(args ...string) {
		t.Helper()
		if status, stdout, stderr := ctl(args...); status != 0 {
			t.Fatalf("ctl limit %v: %s%s", args, stdout, stderr)
		}
	}
	set("set", "mail", "90/1m")
	at := freeAddress(t)
	i := launchServer(t, file(t, fmt.Sprintf(limitedRoot, at, server.Addr)+adminAnywhere))
	h := holderAt(t, at, "mailer", "")
	becomes := func(story string, capacity float64) {
		t.Helper()
		eventually(t, story, func() bool {
			_, _ = h.report(t, "mail", 900_000)
			return leasedCapacity(t, i, "mail") == capacity
		})
	}
	becomes("a limit from before the start", 1.5)
	set("set", "mail", "200/s")
	becomes("another limit", 200)
	eventually(t, "a lease of the limit", func() bool {
		_, _ = h.report(t, "mail", 900_000)
		return h.holds() == 200_000
	})
	set("set", "mail", "100/1m")
	eventually(t, "the reason of a refused limit", func() bool {
		_, stdout, _ := call(t, "ctl", "leases", "--admin", i.Admin)
		return strings.Contains(stdout, `limit of mail refused: the limit 100/1m is no whole number of thousandths a second, or out of range: use 1666/1000s`)
	})
	becomes("the last valid limit", 200)
	server.Kill()
	eventually(t, "the outage of etcd", func() bool {
		_, stdout, _ := call(t, "ctl", "leases", "--admin", i.Admin)
		return strings.Contains(stdout, "the limits of headgate ctl limit cannot be read")
	})
	becomes("the last limit without etcd", 200)
	server.Restart()
	set("set", "mail", "300/s")
	becomes("a limit after the outage", 300)
	set("delete", "mail")
	becomes("the capacity of the file", 500)
}
