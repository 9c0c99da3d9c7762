package openapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestOpenAPI compares the document of a server with requests and answers of every kind. Then it changes the document
// in many ways: each change must be found.
func TestOpenAPI(t *testing.T) {
	text, all := exchanges(t)
	if faults := judge(t, read(t, text), all); len(faults) > 0 {
		t.Fatal(strings.Join(faults, "\n"))
	}
	const long = 2000 // Lists of 1,000 requests take most of the time, and find no change that others do not.
	all = slices.DeleteFunc(all, func(e *exchange) bool { return len(e.body) > long && e.status != http.StatusRequestEntityTooLarge })
	for _, change := range changes() {
		var tree map[string]any
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		at, name := change.at[:strings.LastIndex(change.at, "/")], change.at[strings.LastIndex(change.at, "/")+1:]
		node, found := (&document{tree: tree}).at(at)
		if !found {
			t.Fatalf("the document has no %s", at)
		}
		name = strings.ReplaceAll(name, "~1", "/")
		if change.to == nil && node[name] == nil {
			t.Fatalf("%s has no %s", at, name)
		}
		if node[name] = change.to; change.to == nil {
			delete(node, name)
		}
		changed, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		faults := judge(t, read(t, changed), all)
		if !slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, change.fault) }) {
			t.Errorf("%s becomes %v: no fault has %q: %v", change.at, change.to, change.fault, faults)
		}
	}
}

// change is a change of the document, and a fault that it must give.
type change struct {
	at    string
	to    any // nil removes it.
	fault string
}

// changes are ways in which the document can be wrong.
func changes() []change {
	const schemas, paths = "/components/schemas/", "/paths/"
	text := map[string]any{"type": "string"}
	return []change{
		// An answer has something that the document lacks.
		{schemas + "Answer/properties/retry_after", nil, "retry_after"},
		{schemas + "Answer/properties/fallback", nil, "fallback"},
		{schemas + "Mark/properties/value", nil, "value"},
		{schemas + "Problem/properties/violated-policies", nil, "violated-policies"},
		{schemas + "Failure/properties/error/properties/code", nil, "code"},
		{schemas + "RateLimitResponse/properties/dynamicMetadata", nil, "dynamicMetadata"},
		{schemas + "Answer/properties/remaining", text, "remaining"},
		{schemas + "Answer/properties/verdict/enum", []any{"allow"}, "verdict"},
		{schemas + "Answer/required", []any{"verdict", "reason", "policy"}, "policy"},
		{paths + "~1json/post/responses/413", nil, "413"},
		{paths + "~1v1~1decide/get/responses/3XX", nil, "302"},
		{paths + "~1v1~1decide/get/responses/204/headers/RateLimit", nil, "lacks the field Ratelimit"},
		{"/components/responses/TooLong/content", map[string]any{"text/html": map[string]any{}}, "text/plain"},
		{paths + "~1healthcheck/get/responses/500/content", map[string]any{"text/plain": map[string]any{}}, "there is no body"},
		{paths + "~1healthcheck", nil, "the document lacks /paths/~1healthcheck/get"},
		// No answer has something of the document.
		{schemas + "Answer/properties/delay", text, "no answer has " + schemas + "Answer/properties/delay"},
		{schemas + "Failure/properties/error/properties/hint", text, "no answer has " + schemas + "Failure"},
		{schemas + "Code/enum", []any{"OK", "OVER_LIMIT", "UNKNOWN"}, "no answer has " + schemas + "Code/enum/UNKNOWN"},
		{paths + "~1healthcheck/get/responses/418", map[string]any{"description": "none"}, "no answer has " + paths + "~1healthcheck/get/responses/418"},
		{"/components/responses/TooLong/headers", map[string]any{"Retry-After": map[string]any{"schema": text}}, "TooLong/headers/Retry-After"},
		// A request has something that the document lacks, or the other way round.
		{schemas + "Request/properties/cost", nil, "the request follows the document: false, want true"},
		{schemas + "Request/additionalProperties", nil, "the request follows the document: true, want false"},
		{schemas + "SentLimit/required", nil, "the request follows the document: true, want false"},
		{schemas + "Request/properties/port", text, "no request has " + schemas + "Request/properties/port"},
		{schemas + "SentLimit/properties/unit/enum", []any{"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"}, "want false"},
		{paths + "~1v1~1decide/get/parameters", []any{map[string]any{"name": "X-Port", "in": "header", "schema": text}}, "X-Port"},
	}
}

// TestOtherMethods: a path of the document refuses methods that the document lacks, and names those that it has.
func TestOtherMethods(t *testing.T) {
	address := launch(t, usual)
	get := &exchange{method: http.MethodGet, target: "/openapi.json"}
	get.send(t, address)
	d := read(t, get.answer)
	for path := range object(d.tree["paths"]) {
		described, _ := d.at(pointer("/paths", path))
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"} {
			has := described[strings.ToLower(method)] != nil || method == http.MethodHead && described["get"] != nil
			e := &exchange{method: method, target: path, header: http.Header{}}
			e.send(t, address)
			if (e.status != http.StatusMethodNotAllowed) != has || !has && e.answerHeader.Get("Allow") == "" {
				t.Errorf("%v, Allow is %q, and the document has the method: %t", e, e.answerHeader.Get("Allow"), has)
			}
		}
	}
}
