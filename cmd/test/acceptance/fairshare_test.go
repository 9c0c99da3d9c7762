package acceptance

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fairShareConfiguration takes further settings of fair_share, and then the upstream.
const fairShareConfiguration = `version: 1
max_memory: 16MiB
log: {decisions: none}
rules: []
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
fair_share: {client: "header:X-Client-Id", %s}
`

// inOneCycle has settings for tests within a single cycle. Each of the clients A and B has 2 of
// 4 units from the start.
const inOneCycle = "capacity: 4, cycle: 1h, reclaim: next_cycle, weights: {A: 1, B: 1}"

// shareTable is the document of an instance's shares.
type shareTable struct {
	Cycle    uint64     `json:"cycle"`
	Capacity int64      `json:"capacity"`
	Clients  []shareRow `json:"clients"`
	Mode     string     `json:"mode"`
	Ends     time.Time  `json:"ends"`
	Admitted int64      `json:"admitted"`
}

// shareRow is the row of one client.
type shareRow struct {
	Client   string `json:"client"`
	Demand   int64  `json:"demand"`
	Size     int64  `json:"size"`
	Borrowed int64  `json:"borrowed"`
	Lent     int64  `json:"lent"`
	Seen     int64  `json:"seen"`
	Admitted int64  `json:"admitted"`
	Refused  int64  `json:"refused"`
}

// row gives the row of a client, or an empty row for an unknown client.
func (s *shareTable) row(client string) shareRow {
	for _, row := range s.Clients {
		if row.Client == client {
			return row
		}
	}
	return shareRow{}
}

// sizes gives the sizes in the order of the clients' names.
func (s *shareTable) sizes() []int64 {
	var sizes []int64
	for _, row := range s.Clients {
		sizes = append(sizes, row.Size)
	}
	return sizes
}

// ctlShares runs headgate ctl shares --json.
func ctlShares(t *testing.T, i *instance) shareTable {
	t.Helper()
	status, out, faults := call(t, "ctl", "shares", "--json", "--admin", i.Admin)
	if status != 0 {
		t.Fatalf("ctl shares ends with %d: %s", status, faults)
	}
	return shareTableIn(t, out)
}

// askShares reads the shares from the admin address.
func askShares(t *testing.T, i *instance) shareTable {
	t.Helper()
	resp, body := get(t, "http://"+i.Admin+"/api/v1/shares")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("/api/v1/shares is %d: %s", resp.StatusCode, body)
	}
	return shareTableIn(t, body)
}

func shareTableIn(t *testing.T, text string) (s shareTable) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// nextCycle waits for the next cycle, and gives the shares just after its start.
func nextCycle(t *testing.T, i *instance) (next shareTable) {
	t.Helper()
	now := askShares(t, i)
	<-time.After(time.Until(now.Ends))
	eventually(t, "the next cycle", func() bool {
		next = askShares(t, i)
		return next.Cycle > now.Cycle
	})
	return next
}

// farFromItsEnd waits for the next cycle if the present long cycle is about to end.
func farFromItsEnd(t *testing.T, i *instance) {
	t.Helper()
	if now := askShares(t, i); time.Until(now.Ends) < 2*patience {
		<-time.After(time.Until(now.Ends))
		eventually(t, "the next cycle", func() bool { return askShares(t, i).Cycle > now.Cycle })
	}
}

// burst lets clients send their demands at the same time, each client one request after the
// other. It gives the number of allowed requests of each client.
func burst(t *testing.T, i *instance, demands map[string]int64) map[string]int64 {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: len(demands)}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	passed := map[string]int64{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, n := range demands {
		all.Go(func() {
			for range n {
				status := asClient(t, client, i, name)
				mu.Lock()
				if status == http.StatusOK {
					passed[name]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return passed
}

func asClient(t *testing.T, with *http.Client, i *instance, name string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Proxy+"/", http.NoBody)
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("X-Client-Id", name)
	resp, err := with.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s is answered %d, want 200 or 429", name, resp.StatusCode)
	}
	return resp.StatusCode
}

// words gives the columns of the row that begins with a name, or nil.
func words(table, name string) []string {
	for line := range strings.Lines(table) {
		if columns := strings.Fields(line); len(columns) > 0 && columns[0] == name {
			return columns[1:]
		}
	}
	return nil
}
