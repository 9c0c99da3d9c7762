package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/front/openapi"
	"github.com/headgate/headgate/cmd/internal/server"
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
	for _, s := range server.HTTPServices() {
		method, path, named := strings.Cut(s.Pattern, " ")
		if !named {
			method, path = "", s.Pattern
		}
		operations := described.Paths[path]
		if _, found := operations[strings.ToLower(method)]; len(operations) == 0 || named && !found {
			t.Errorf("the document lacks the route %q: describe it in cmd/internal/front/openapi/openapi.json", s.Pattern)
		}
	}
	mux := server.Routes()
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
func decisionServerOf(t *testing.T, i *Instance) *server.Server {
	t.Helper()
	for _, c := range i.components {
		if d, ok := c.(*server.Server); ok {
			return d
		}
	}
	t.Fatal("the instance has no decision server")
	return nil
}
