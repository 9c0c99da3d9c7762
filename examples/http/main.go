// Command http is a service of net/http behind the rules of headgate.yaml.
package main

import (
	"io"
	"log"
	"net/http"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/middleware/httplimit"
)

func main() {
	handler, err := guarded("headgate.yaml", service())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Println("serving on http://" + server.Addr)
	log.Fatal(server.ListenAndServe())
}

// guarded puts the rules of a file in front of a handler.
func guarded(file string, next http.Handler) (http.Handler, error) {
	c, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	g, err := c.NewGuard()
	if err != nil {
		return nil, err
	}
	return httplimit.New(g, httplimit.Options{})(next), nil
}

// service knows nothing of limits, except for what it leaves out when it is told to.
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
