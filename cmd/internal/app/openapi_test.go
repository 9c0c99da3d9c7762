package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/front/openapi"
)

// TestRoutesAreDescribed: the OpenAPI document has each route of the HTTP listener, and no other one.
func TestRoutesAreDescribed(t *testing.T) {
	var described struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(openapi.Document()), &described); err != nil {
		t.Fatal(err)
	}
	server := decisionServerOf(t, startServer(t, serverOptions(t, "")))
	for _, s := range server.httpServices() {
		method, path, named := strings.Cut(s.pattern, " ")
		if !named {
			method, path = "", s.pattern
		}
		operations := described.Paths[path]
		if _, found := operations[strings.ToLower(method)]; len(operations) == 0 || named && !found {
			t.Errorf("the document lacks the route %q: describe it in cmd/internal/front/openapi/openapi.json", s.pattern)
		}
	}
	mux := server.routes()
	for path, operations := range described.Paths {
		for method := range operations {
			r := httptest.NewRequestWithContext(t.Context(), strings.ToUpper(method), path, http.NoBody)
			if _, pattern := mux.Handler(r); pattern == "" || !strings.HasSuffix(pattern, path) {
				t.Errorf("no route serves %s %s of the document", method, path)
			}
		}
	}
}

// decisionServerOf gives the component that serves the decisions of an instance.
func decisionServerOf(t *testing.T, i *Instance) *decisionServer {
	t.Helper()
	for _, c := range i.components {
		if d, ok := c.(*decisionServer); ok {
			return d
		}
	}
	t.Fatal("the instance has no decision server")
	return nil
}
