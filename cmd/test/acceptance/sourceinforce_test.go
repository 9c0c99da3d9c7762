package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/cmd/internal/testkit/postgres"
	"github.com/headgate/headgate/internal/testkit/etcd"
)

// slowness is how much slower than the promise a machine with other work may be. TestSoakSourceInForce has the promise itself.
const slowness = 5

// inForce makes a change, and waits until the processes have n customers of the source. It gives the time from before the
// change until it took effect in the last process, as the processes state it: waiting tests and slow reads of metrics do
// not count.
func inForce(t *testing.T, all []*instance, n float64, change func()) time.Duration {
	t.Helper()
	began := time.Now()
	change()
	var last time.Duration
	for _, i := range all {
		eventually(t, "the change", func() bool { return metric(t, i, `headgate_source_objects{kind="customers"}`) == n })
		at := metric(t, i, "headgate_source_last_change_timestamp_seconds")
		last = max(last, time.Unix(0, int64(at*1e9)).Sub(began))
	}
	return last
}

// watchedSource is a real source, for the configuration of processes and for changes.
type watchedSource struct {
	name   string
	config string // like {etcd: {…}}
	// put adds a customer.
	put func(name, text string)
}

// watchedSources starts a real etcd and a real PostgreSQL, with the default plan.
func watchedSources(t *testing.T) []watchedSource {
	t.Helper()
	return []watchedSource{inEtcd(t), inPostgres(t)}
}

const freeCalls = `{quotas: {api_calls: [{limit: 3/365d}]}}`

func inEtcd(t *testing.T) watchedSource {
	t.Helper()
	server := etcd.Start(t)
	client := etcdclient.New(t, server.Addr)
	put := func(key, text string) {
		if _, err := client.Do(t.Context(), clientv3.OpPut("/objects/"+key, text)); err != nil {
			t.Error(err)
		}
	}
	put("plans/free", freeCalls)
	return watchedSource{
		"etcd", fmt.Sprintf("{etcd: {endpoints: [%q], prefix: /objects}}", "http://"+server.Addr),
		func(name, text string) { put("customers/"+name, text) },
	}
}

func inPostgres(t *testing.T) watchedSource {
	t.Helper()
	database, config := tablesOfObjects(t)
	put := func(kind, name, text string) {
		database.SQL(fmt.Sprintf("INSERT INTO headgate.objects (kind, name, body) VALUES ('%s', '%s', '%s')", kind, name, text))
	}
	put("plan", "free", freeCalls)
	return watchedSource{"postgres", config, func(name, text string) { put("customer", name, text) }}
}

// tablesOfObjects starts a real PostgreSQL with the tables of a source, and gives the configuration of the source.
func tablesOfObjects(t *testing.T) (database *postgres.Server, config string) {
	t.Helper()
	database = postgres.Start(t)
	status, sql, stderr := call(t, "ctl", "source", "init")
	if status != 0 {
		t.Fatal(stderr)
	}
	database.SQL(sql)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(database.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return database, fmt.Sprintf("{postgres: {hosts: [%q], database: %s, user: %s, password_file: %q}}", database.Addr, postgres.Database,
		postgres.User, password)
}

// followers starts three processes that follow a source.
func followers(t *testing.T, source string) []*instance {
	t.Helper()
	upstream := upstreamOfQuotas(t)
	var all []*instance
	for range 3 {
		i := start(t, "version: 1\nmax_memory: 16MiB\nsource: "+source+`
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls}
default_plan: free
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`, upstream)
		eventually(t, "the plan", func() bool { return metric(t, i, `headgate_source_objects{kind="plans"}`) == 1 })
		all = append(all, i)
	}
	return all
}

// TestSourceInForce: a change in etcd and in PostgreSQL is in force in three processes.
func TestSourceInForce(t *testing.T) {
	t.Parallel()
	for _, s := range watchedSources(t) {
		all := followers(t, s.config)
		elapsed := inForce(t, all, 1, func() { s.put("acme", `{limits: {api_calls: [{limit: 5/365d}]}}`) })
		t.Logf("%s: the change is in force after %v", s.name, elapsed)
		if elapsed > time.Second*slowness {
			t.Errorf("%s: the change is in force after %v, want at most 1s on an idle machine", s.name, elapsed)
		}
		for _, i := range all {
			if n := allowed(t, i, "acme", 6); n != 5 {
				t.Errorf("%s: after the change, %d requests passed, want 5", s.name, n)
			}
		}
	}
}
