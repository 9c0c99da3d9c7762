// Command http is a net/http service that applies the rules of headgate.yaml.
package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/middleware/httplimit"
)

func main() {
	handler, err := guarded(context.Background(), "headgate.yaml", service())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Println("serving on http://" + server.Addr)
	log.Fatal(server.ListenAndServe())
}

// guarded applies the rules of a file to the requests of a handler, and adds a metrics
// page. log/slog receives refusals, store failures and reloads. ctx ends the reloads.
func guarded(ctx context.Context, file string, next http.Handler) (http.Handler, error) {
	c, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	g, err := open.Guard(c)
	if err != nil {
		return nil, err
	}
	go func() {
		if err := open.Follow(ctx, file, c, g, nil); err != nil { // Follow reloads the rules when the file changes.
			log.Print(err)
		}
	}()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.Guard(g))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", prom.Handler(registry))
	mux.Handle("/", httplimit.New(g, httplimit.Options{})(next))
	return mux, nil
}

// service has no limits of its own. service only shortens an answer if the request asks for it.
func service() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/product", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a sluice gate, 2 m wide\n")
	})
	mux.HandleFunc("GET /v1/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Degraded") == "short" {
			_, _ = io.WriteString(w, "10 of 200 gates\n")
			return
		}
		_, _ = io.WriteString(w, "200 of 200 gates\n")
	})
	return mux
}
