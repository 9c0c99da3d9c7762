package rule

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestQueryLikeGo: Lookup gives what net/url gives, for random queries of the signs that matter.
func TestQueryLikeGo(t *testing.T) {
	pieces := []string{"a", "b", "format", "&", "&", "=", "=", ";", "+", "%", "%61", "%2B", "%26", "%zz", "%0", "[", "]", " ", "\xff", "é"}
	random := rand.New(rand.NewPCG(1, 2))
	for range race.Fewer(50_000, 5_000) {
		var text strings.Builder
		for range random.IntN(10) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		q := Query(text.String())
		want, _ := url.ParseQuery(text.String()) // The error is of pairs that are left out.
		for _, name := range []string{"a", "b", "format", "a+b", "a b"} {
			value, found := q.Lookup(name)
			if found != want.Has(name) || value != want.Get(name) {
				t.Fatalf("%q: %q is %q, %v; want %q, %v", q, name, value, found, want.Get(name), want.Has(name))
			}
		}
	}
}

// TestUnclearQuery: a query is refused if and only if services read a value that rules read in different ways.
func TestUnclearQuery(t *testing.T) {
	var r Reads
	r.AddQuery("format", "json")
	r.AddQuery("city", "new york")
	r.AddQuery("filter[kind]")
	r.AddQuery("api_key")
	for query, want := range map[string]string{
		"":                                "",
		"format=json":                     "",
		"x=1&format=json&y=%zz&&=&&100%":  "",
		"format=":                         "",
		"format":                          "",
		"f%6Frmat=json":                   "",
		"format=a%20b":                    "",
		"format=a+b":                      "", // No rule tells a space from a plus sign here.
		"formats=1&forma=2&xformat=3":     "",
		"x;y=1&format=json":               "",
		"filter[kind]=a":                  "",
		"filter%5Bkind%5D=a&filter[x]=b":  "",
		"filter=a":                        "",
		"format=json&format=json":         "format",
		"format=json&form%61t=xml":        "format",
		"format=json&FORMAT=xml":          "format",
		"Format=xml":                      "format",
		"format[]=json":                   "format",
		"format[a][b]=json":               "format",
		"%20format=json":                  "format",
		"+format=json":                    "format",
		"format%00=json":                  "format",
		"format%00x=json":                 "format",
		"format=json%00":                  "format",
		"format=%zz":                      "format",
		"format=%":                        "format",
		"format=%u0061":                   "format",
		"x=1;format=json":                 "format",
		"format=json;x=1":                 "format",
		"x;;format":                       "format",
		"city=new+york":                   "city",
		"city=new%20york":                 "",
		"city=new%2Byork":                 "",
		"filter[kind][]=a":                "filter[kind]",
		"filter[KIND]=a":                  "filter[kind]",
		"api.key=a":                       "api_key",
		"api%20key=a":                     "api_key",
		"api_key=a":                       "",
		strings.Repeat("x", 1000) + "=1":  "",
		strings.Repeat("[", 1000) + "=1":  "",
		"format" + strings.Repeat("[", 9): "format",
	} {
		if got, unclear := r.UnclearQuery(query); got != want || unclear != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", query, got, unclear, want)
		}
	}
	if name, unclear := new(Reads).UnclearQuery("a=1&a=2"); unclear {
		t.Errorf("no rule reads %q", name)
	}
	var both Reads
	both.AddQuery("id", "a b")
	both.AddQuery("ID")
	if name, unclear := both.UnclearQuery("id=1&ID=a+b"); unclear {
		t.Errorf("both cases of %q are read", name)
	}
	if !slices.Equal(both.Queries, []string{"id", "ID"}) {
		t.Errorf("got %q", both.Queries)
	}
}

// TestQueriesAllocateNothing: neither the check nor a lookup of a value without escapes allocates.
func TestQueriesAllocateNothing(t *testing.T) {
	var r Reads
	r.AddQuery("format", "json")
	q := Query("page=2&sort=name&f%6Frmat=json&x[y]=" + strings.Repeat("%20", 1000))
	var v QueryValues
	if n := testing.AllocsPerRun(100, func() {
		v.Reset(string(q))
		if _, unclear := r.ReadQuery(&v); unclear {
			t.Fatal("unclear")
		}
		if value, found := v.Lookup("format"); !found || value != "json" {
			t.Fatal(value, found)
		}
		if value, found := q.Lookup("format"); !found || value != "json" {
			t.Fatal(value, found)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestQueryValues: what one scan finds is what a lookup finds, for names that rules read and for others.
func TestQueryValues(t *testing.T) {
	pieces := []string{"a", "b", "A", "f", "format", "for%6Dat", "a.b", "a[]", "=", "=", "=", "&", "&", "&", "1", "%20", "+", "%", ";", "x-y_1"}
	names := []string{"a", "b", "format", "x-y_1", "a.b", "A", "c"}
	draw, plain := rand.New(rand.NewPCG(1, 2)), 0
	var v QueryValues
	for range 20_000 {
		var raw strings.Builder
		for range draw.IntN(12) {
			raw.WriteString(pieces[draw.IntN(len(pieces))])
		}
		var r Reads
		for _, name := range names[:draw.IntN(len(names))] {
			r.AddQuery(name)
		}
		v.Reset(raw.String())
		_, unclear := r.ReadQuery(&v)
		if _, same := r.UnclearQuery(raw.String()); same != unclear {
			t.Fatalf("%q: unclear %t, and then %t", raw.String(), unclear, same)
		}
		if unclear {
			continue
		}
		plain++
		q := Query(raw.String())
		for _, name := range names {
			got, found := v.Lookup(name)
			if want, there := q.Lookup(name); got != want || found != there {
				t.Fatalf("%q, %s: got %q, %t; want %q, %t", raw.String(), name, got, found, want, there)
			}
		}
	}
	if plain < 5000 {
		t.Errorf("only %d queries have one meaning", plain)
	}
}

// FuzzUnclearQuery: a query that is not unclear has one value for a name, by every way to split and to decode it.
func FuzzUnclearQuery(f *testing.F) {
	for _, seed := range []string{"format=json&x=1", "format=a;format=b", "FORMAT=1&f%6frmat=%00", "a[format]=1&+format=+"} {
		f.Add(seed)
	}
	var r Reads
	r.AddQuery("format", "json")
	f.Fuzz(func(t *testing.T, query string) {
		_, unclear := r.UnclearQuery(query)
		found := 0
		for _, pair := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
			name, _, _ := strings.Cut(pair, "=")
			if name, err := url.QueryUnescape(name); err == nil && strings.EqualFold(name, "format") {
				found++
			}
		}
		if found > 1 && !unclear {
			t.Errorf("%q has %d values, and is taken", query, found)
		}
	})
}
