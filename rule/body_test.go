package rule

import (
	"slices"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/race"
)

// mcpCall is a request of MCP: a JSON-RPC call of a tool.
func mcpCall(tool string) *headgate.Request {
	fields := sent{"method": "tools/call", "params.name": tool, "model": "gpt-4.1-mini"}
	return &headgate.Request{Method: "POST", Path: "/mcp", Body: &headgate.Body{Fields: fields}}
}

// TestMatchJSON: a rule matches by the fields of a body, and a request without a body lacks them.
func TestMatchJSON(t *testing.T) {
	search := Rule{
		Name: "search", Match: Match{Path: "/mcp", JSON: map[string]string{"method": "tools/call", "params.name": "search*"}},
		Key: []Part{partOf(t, "json:params.name"), partOf(t, "model")}, Exempt: []Match{{JSON: map[string]string{"params.name": "search_help"}}},
	}
	mini := Rule{Name: "mini", Match: Match{Model: "gpt-4*", Not: &Match{Model: "gpt-4o*"}}, Key: []Part{{kind: partAll}}}
	x, err := NewIndex([]Rule{search, mini})
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string][]int{"search_web": {0, 1}, "read": {1}, "search_help": {1}} {
		if got := x.Match(mcpCall(tool), nil); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", tool, got, want)
		}
	}
	without := &headgate.Request{Method: "POST", Path: "/mcp"}
	if got := x.Match(without, nil); len(got) > 0 {
		t.Errorf("a request without a body matches %v", got)
	}
	early, err := NewIndex([]Rule{search.BeforeBody(), mini.BeforeBody()})
	if err != nil {
		t.Fatal(err)
	}
	if got := early.Match(without, nil); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("before the body is known, %v may match, want both", got)
	}
	if got := early.Match(&headgate.Request{Path: "/other"}, nil); !slices.Equal(got, []int{1}) {
		t.Errorf("on another path, %v may match, want the rule without a path", got)
	}
	if got, want := search.KeyText(mcpCall("a b")), `search json:params.name="a b" model="gpt-4.1-mini"`; got != want {
		t.Errorf("got key %s, want %s", got, want)
	}
	if _, shared := search.AppendKey(nil, without); !shared {
		t.Error("a request without a body shares no key")
	}
	var reads Reads
	reads.AddRule(&search)
	reads.AddRule(&mini)
	if want := []string{"params.name", "model", "method"}; !slices.Equal(reads.Body, want) {
		t.Errorf("reads %v, want %v", reads.Body, want)
	}
	if !search.ReadsBody() || !mini.ReadsBody() || (&Rule{Key: []Part{{kind: partIP}}}).ReadsBody() {
		t.Error("ReadsBody is wrong")
	}
}

// TestBodyPathFaults: a fault of a path names it and says how to write one.
func TestBodyPathFaults(t *testing.T) {
	for _, path := range []string{"", ".a", "a.", "a..b", "$.a", "a[0]", "a b", "/a", "*", "a.b.c.d.e.f.g.h.i"} {
		if bad, found := errortype.As[*ParseError](CheckBodyPath(path)); !found || bad.Fix == "" {
			t.Errorf("%q is no fault", path)
		}
		if _, err := ParsePart("json:" + path); err == nil {
			t.Errorf("json:%s is no fault", path)
		}
		if _, err := NewIndex(named([]Rule{{Match: Match{JSON: map[string]string{path: "1"}}}})); err == nil {
			t.Errorf("a match of %q is no fault", path)
		}
	}
	for _, path := range []string{"a", "params.name", "a.b.c.d.e.f.g.h", "_meta.progressToken", "x-y"} {
		if err := CheckBodyPath(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := ParsePart("json:model"); err == nil {
		t.Error("json:model is another part than model")
	}
}

// TestBodyMatchAllocatesNothing: neither the match nor the key of a request with a body allocates.
func TestBodyMatchAllocatesNothing(t *testing.T) {
	r := Rule{Name: "a", Match: Match{Model: "gpt-4*", JSON: map[string]string{"params.name": "*"}}, Key: []Part{partOf(t, "json:params.name")}}
	x, err := NewIndex([]Rule{r})
	if err != nil {
		t.Fatal(err)
	}
	req, key, found := mcpCall("search"), make([]byte, 0, 256), make([]int, 0, 4)
	if n := testing.AllocsPerRun(100, func() {
		key, _ = r.AppendKey(key[:0], req)
		found = x.Match(req, found[:0])
	}); n > 0 && !race.On || len(found) != 1 {
		t.Errorf("%v allocations, matches %v", n, found)
	}
}

func partOf(t *testing.T, text string) Part {
	t.Helper()
	p, err := ParsePart(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
