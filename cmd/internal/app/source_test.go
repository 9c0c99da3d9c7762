package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// served is a document over HTTP that changes.
type served struct {
	*httptest.Server

	text atomic.Pointer[string]
}

func serveDocument(t *testing.T, text string) *served {
	t.Helper()
	s := &served{}
	s.text.Store(&text)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, *s.text.Load())
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *served) set(text string) { s.text.Store(&text) }

// followedText is a configuration that follows a document.
const followedText = `
source: {http: {url: %q, interval: 1s}, cache: %q}
rules: [{name: api, key: [header:X-Customer], quota: api_calls}]
default_plan: free
`

// textOf gives the text in force of a plan or customer.
func textOf(i *Instance, kind source.Kind, name string) string {
	entry, _ := i.source.Objects().Get(source.Key{Kind: kind, Name: name})
	return entry.Text
}

// heldText gives what the status says of the changes that are held back.
func heldText(i *Instance) string {
	var all []string
	for _, h := range i.Status().Source.Held {
		all = append(all, strings.Join(h.Objects, " "))
	}
	return strings.Join(all, "; ")
}

// TestRestartWithFaultsInTheSource: a restart keeps the former versions of objects that are faulty in the source by now, also of the
// default plan.
func TestRestartWithFaultsInTheSource(t *testing.T) {
	const first = `{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}, "paid": {"quotas": {"api_calls": [{"limit": "9/1d"}]}}},
		"customers": {"acme": {"plan": "paid"}, "gone": {}}}`
	d := serveDocument(t, first)
	settings := fmt.Sprintf(followedText, d.URL, filepath.Join(t.TempDir(), "cache"))
	before := startServer(t, serverOptions(t, settings))
	if err := before.Stop(); err != nil {
		t.Fatal(err)
	}
	d.set(strings.NewReplacer("3/1d", "3/1x", "9/1d", "9/1x", `, "gone": {}`, `, "new": {}`).Replace(first))
	i := startServer(t, serverOptions(t, settings))
	if err := i.ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if got, want := textOf(i, source.Plan, "free"), `{"quotas": {"api_calls": [{"limit": "3/1d"}]}}`; got != want {
		t.Errorf("the default plan is %s, want %s", got, want)
	}
	if got := textOf(i, source.Customer, "acme"); got != `{"plan": "paid"}` {
		t.Errorf("the customer of the faulty plan is %q", got)
	}
	if gone, fresh := textOf(i, source.Customer, "gone"), textOf(i, source.Customer, "new"); gone != "" || fresh != "{}" {
		t.Errorf("the deleted customer is %q and the new one is %q", gone, fresh)
	}
	s := i.Status().Source
	if got := heldText(i); s.State != "followed" || got != "plans/free; plans/paid" {
		t.Errorf("the state is %s, and held back are %s", s.State, got)
	}
}

// TestStartFromTheCache: the cache is shown as such when the source cannot be read, and not before.
func TestStartFromTheCache(t *testing.T) {
	d := serveDocument(t, `{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}}}`)
	settings := fmt.Sprintf(followedText, d.URL, filepath.Join(t.TempDir(), "cache"))
	if err := startServer(t, serverOptions(t, settings)).Stop(); err != nil {
		t.Fatal(err)
	}
	d.set("no document")
	i := startServer(t, serverOptions(t, settings))
	if s := i.Status().Source; s.State != "cache" || s.Plans != 1 || s.Failure == "" || i.ready() != nil {
		t.Errorf("got %+v, %v", s, i.ready())
	}
}

// TestLostCustomers: a document whose customers are null deletes none, also after a restart with a cache.
func TestLostCustomers(t *testing.T) {
	t.Parallel()
	const plans = `"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}}`
	d := serveDocument(t, `{`+plans+`, "customers": {"acme": {}}}`)
	settings := fmt.Sprintf(followedText, d.URL, filepath.Join(t.TempDir(), "cache"))
	if err := startServer(t, serverOptions(t, settings)).Stop(); err != nil {
		t.Fatal(err)
	}
	d.set(`{` + plans + `, "customers": null}`)
	i := startServer(t, serverOptions(t, settings))
	if s := i.Status().Source; s.Customers != 1 || s.State != "cache" || !strings.Contains(s.Failure, "write customers: {} to delete") {
		t.Errorf("got %+v", s)
	}
	d.set(`{` + plans + `, "customers": {}}`)
	eventually(t, "the deletion", func() bool { return i.Status().Source.Customers == 0 })
}

// TestCacheAfterAReload: what takes effect with another file is in the cache too.
func TestCacheAfterAReload(t *testing.T) {
	d := serveDocument(t, `{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}}, "customers": {"acme": {"plan": "gold"}}}`)
	cache := filepath.Join(t.TempDir(), "cache")
	settings := fmt.Sprintf(followedText, d.URL, cache)
	o := serverOptions(t, settings)
	o.Load = func() (*config.Config, error) {
		return serverConfig(t, settings+"plans: {gold: {quotas: {api_calls: [{limit: 9/1d}]}}}\n"), nil
	}
	i := startServer(t, o)
	eventually(t, "the cache", func() bool { return i.Status().Source.Cache.Written != nil })
	if err := i.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := textOf(i, source.Customer, "acme"); got != `{"plan": "gold"}` {
		t.Fatalf("after the reload, the customer is %q", got)
	}
	if err := i.Stop(); err != nil {
		t.Fatal(err)
	}
	cached, err := objects.ReadCache(cache, d.URL)
	if err != nil || len(cached.Objects) != 2 {
		t.Errorf("the cache has %+v, %v: want the plan and the customer", cached, err)
	}
}
