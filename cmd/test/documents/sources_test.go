package documents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sourcehttp "github.com/headgate/headgate/cmd/internal/source/http"
	sourcepostgres "github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/cmd/internal/testkit/postgres"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/etcd"
)

var sourcesPage = filepath.Join("..", "..", "..", "docs", "sources.md")

// fencedAfter gives the fenced block after a marker `<!-- run: name -->`.
func fencedAfter(t *testing.T, document, name string) string {
	t.Helper()
	lines := linesOf(t, document)
	from := slices.Index(lines, "<!-- run: "+name+" -->")
	if from < 0 {
		t.Fatalf("%s has no marker <!-- run: %s -->", document, name)
	}
	lines = lines[from+2:]
	return strings.Join(lines[:slices.Index(lines, "```")], "\n") + "\n"
}

// indented gives the lines of the page that are indented and begin with one of the words, without the indentation.
func indented(t *testing.T, words ...string) (all []string) {
	t.Helper()
	for _, line := range linesOf(t, sourcesPage) {
		text, found := strings.CutPrefix(line, "    ")
		if found && slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(text, word) }) {
			all = append(all, text)
		}
	}
	return all
}

// toReceiver gives what a source says to a channel.
type toReceiver chan any

func (r toReceiver) Changed(c source.Change) { r <- c }
func (r toReceiver) Reached(at time.Time)    { r <- at }
func (r toReceiver) Failed(err error)        { r <- err }

// TestAnotherDatabase runs the program of the page on a database with its tables. Headgate reads the objects, then nothing
// while they do not change, and then a changed row.
func TestAnotherDatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program, database, address := filepath.Join(folder, "objects.py"), filepath.Join(folder, "app.db"), freeAddress(t)
	if err := os.WriteFile(program, []byte(fencedAfter(t, sourcesPage, "database")), 0o600); err != nil {
		t.Fatal(err)
	}
	sql := func(text string) {
		command := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c",
			"import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()", database, text)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", text, err, out)
		}
	}
	sql(fencedAfter(t, sourcesPage, "tables"))
	command := exec.CommandContext(t.Context(), "/usr/bin/python3", program, database, address)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // The context of the test has ended it.
	s, err := sourcehttp.Open(sourcehttp.Config{URL: "http://" + address, Interval: 20 * time.Millisecond, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	to := make(toReceiver)
	ended := make(chan struct{})
	go func() { s.Follow(t.Context(), to); close(ended) }()
	t.Cleanup(func() {
		for {
			select {
			case <-to:
			case <-ended:
				_ = s.Close()
				return
			}
		}
	})
	objects := func() string {
		for {
			switch said := (<-to).(type) {
			case source.Change:
				var all []string
				for _, o := range said.Objects {
					all = append(all, o.Key.String()+" "+o.Text)
				}
				slices.Sort(all)
				return strings.Join(all, "\n")
			case time.Time:
				return "reached"
			} // The program has not started yet.
		}
	}
	const plan = `plans/free {"quotas": {"api_calls": [{"limit": "200/month"}]}}`
	if got, want := objects(), `customers/acme {"plan": "free"}`+"\n"+plan; got != want {
		t.Errorf("the objects are\n%s\nwant\n%s", got, want)
	}
	for range 3 {
		if got := objects(); got != "reached" {
			t.Errorf("without a change: got %s", got)
		}
	}
	sql("DELETE FROM accounts")
	got := objects()
	for got == "reached" {
		got = objects()
	}
	if got != plan {
		t.Errorf("after the change, the objects are\n%s\nwant\n%s", got, plan)
	}
}

// TestCommandsOfEtcd runs the commands of the page on a real etcd.
func TestCommandsOfEtcd(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	server.CTL("user", "add", "headgate:password")
	commands := indented(t, "etcdctl ")
	for n, line := range commands {
		var words []string
		for i, part := range strings.Split(strings.TrimPrefix(line, "etcdctl "), "'") {
			if i%2 == 1 {
				words = append(words, part)
			} else {
				words = append(words, strings.Fields(part)...)
			}
		}
		server.CTL(words...)
		if n == 1 { // Both objects were put.
			if got := server.CTL("get", "--prefix", "--keys-only", "/headgate/config/"); !strings.Contains(got, "customers/acme") || !strings.Contains(got, "plans/free") {
				t.Errorf("the keys are %q", got)
			}
		}
	}
	if len(commands) != 6 {
		t.Errorf("%d commands were found, want 6", len(commands))
	}
	if got := server.CTL("role", "get", "headgate"); !strings.Contains(got, "/headgate/config/") {
		t.Errorf("the role is %q", got)
	}
}

// TestStatementsOfPostgres runs the statements of the page on a real PostgreSQL. The reader may then read, and the application write.
func TestStatementsOfPostgres(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	server.SQL(sourcepostgres.Schema("headgate"))
	changes, grants := indented(t, "INSERT ", "UPDATE ", "DELETE "), indented(t, "GRANT ")
	if len(changes) != 3 || len(grants) != 6 {
		t.Fatalf("%d changes and %d grants were found, want 3 and 6", len(changes), len(grants))
	}
	server.SQL("INSERT INTO headgate.objects (kind, name, body) VALUES ('customer', 'acme', '{}')")
	server.SQL(strings.Join(changes[:2], "\n"))
	const all = "SELECT string_agg(kind || ' ' || name || ' ' || body, ', ' ORDER BY name) FROM headgate.objects"
	const plan = "plan free {quotas: {api_calls: [{limit: 200/month}]}}"
	if got, want := server.SQL(all), "customer acme {plan: free}, "+plan; got != want {
		t.Errorf("the objects are %s, want %s", got, want)
	}
	server.SQL(changes[2])
	server.SQL("CREATE ROLE reader; CREATE ROLE application;\n" + strings.Join(grants, "\n"))
	if got := server.SQL("SET ROLE reader; " + all); got != plan {
		t.Errorf("the reader sees %s, want %s", got, plan)
	}
	server.SQL("SET ROLE application; " + fmt.Sprintf("UPDATE headgate.objects SET body = %s WHERE name = 'free'", "'{}'"))
	if got := server.SQL(all); got != "plan free {}" {
		t.Errorf("after the change of the application: %s", got)
	}
}
