#!/bin/bash
# Product: github.com/grpc-ecosystem/grpc-gateway/v2 v2.33.0.
# Guess:   The template /users/{id} needs one segment: /users/ is answered with 404, as
#          every other router of Go does.
# Happens: /users/ reaches the handler, with an empty id. /users is 404.
# Follows: A rule or an authorisation for /users/{id} with a name of at least one byte
#          does not see the request that the service reads as "the user without a
#          name". Match /users/ too, or let the service refuse an empty id.
set -eu
want='grpc-gateway: /users/7 "7", /users/ "", /users 404; net/http: /users/7 "7", /users/ 404, /users 404; chi: /users/7 "7", /users/ 404, /users 404'
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module finding

go 1.26

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.33.0
)
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
)

func seen(name string, h http.Handler) string {
	var answers []string
	for _, path := range []string{"/users/7", "/users/", "/users"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		answer := fmt.Sprint(w.Code)
		if w.Code == http.StatusOK {
			answer = w.Body.String()
		}
		answers = append(answers, path+" "+answer)
	}
	return name + ": " + strings.Join(answers, ", ")
}

func main() {
	gateway := runtime.NewServeMux()
	err := gateway.HandlePath(http.MethodGet, "/users/{id}", func(w http.ResponseWriter, _ *http.Request, values map[string]string) {
		fmt.Fprintf(w, "%q", values["id"])
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", r.PathValue("id")) })
	router := chi.NewRouter()
	router.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", chi.URLParam(r, "id")) })
	fmt.Println(strings.Join([]string{seen("grpc-gateway", gateway), seen("net/http", mux), seen("chi", router)}, "; "))
}
GO
export GOWORK=off GOFLAGS=-mod=mod
go mod tidy >/dev/null 2>&1
echo "version: $(go list -m github.com/grpc-ecosystem/grpc-gateway/v2), $(go version | cut -d' ' -f3)"
got=$(go run .)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
