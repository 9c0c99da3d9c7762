package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/config/source"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// sourcedFile names a source. It has a rule and the default plan, and the plans are in the source.
const sourcedFile = `version: 1
source: {http: {url: http://127.0.0.1:1/x}}
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls}
default_plan: free
customers:
  filed: {plan: free}
`

func objects(t testing.TB, file string) *Objects {
	t.Helper()
	c, err := Parse("headgate.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewObjects(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// object makes an object of a key like customers/acme.
func object(key, text string) source.Object {
	section, name, _ := strings.Cut(key, "/")
	for _, kind := range source.Kinds() {
		if kind.Section() == section {
			return source.Object{Key: source.Key{Kind: kind, Name: name}, Text: text, Revision: 1}
		}
	}
	panic("no kind: " + key)
}

func manyCustomers(n, limits int) source.Change {
	c := source.Change{All: true, Objects: []source.Object{
		object("plans/free", "{quotas: {api_calls: [{limit: 200/30d}]}}"),
		object("plans/paid", "{after: meter, quotas: {api_calls: [{limit: 1000/30d, hard: 5000}]}}"),
	}}
	for i := range n {
		text := fmt.Sprintf(`{"plan": "paid", "limits": {"api_calls": [{"limit": "%d/30d", "hard": 900000000}]}, "note": "customer %d"}`, 1000+i%limits, i)
		c.Objects = append(c.Objects, object(fmt.Sprintf("customers/customer-%d", i), text))
	}
	return c
}

func TestManyX(t *testing.T) {
	o := objects(t, sourcedFile)
	began := time.Now()
	o, faults := o.With(manyCustomers(100_000, 10_000))
	if faults != nil {
		t.Fatal(faults[:1])
	}
	t.Log("all", time.Since(began), o.Quotas().Len())
	described, err := o.Config().GuardConfig(stored(t, o), nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(described)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		began = time.Now()
		o2, faults := o.With(source.Change{Objects: []source.Object{object("customers/customer-7", fmt.Sprintf(`{"plan": "free", "note": "%d"}`, i))}})
		if faults != nil {
			t.Fatal(faults)
		}
		took := time.Since(began)
		described.Quotas = o2.Quotas()
		if err := g.Reload(described); err != nil {
			t.Fatal(err)
		}
		t.Log("one", took, time.Since(began), o2.Quotas().Len())
		o = o2
	}
}

func stored(t testing.TB, o *Objects) *memory.Store {
	t.Helper()
	s, err := memory.New(o.Config().StoreConfig())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
