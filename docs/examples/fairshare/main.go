// Command fairshare is a net/http service that shares its capacity among its clients.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

func main() {
	handler, err := shared(service())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Println("serving on http://" + server.Addr)
	log.Fatal(server.ListenAndServe())
}

// shared applies fair share to the requests of a handler, and adds a page with the
// shares of all clients.
func shared(next http.Handler) (http.Handler, error) {
	share, err := guard.NewFairShare(10, "header:X-Client-Id")
	if err != nil {
		return nil, err
	}
	share.Cycle = 10 * time.Second // Ten seconds are long enough to watch. The usual cycle is one second.
	g, err := guard.New(guard.Config{FairShare: share})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", httplimit.New(g, httplimit.Options{})(next))
	mux.HandleFunc("GET /shares", func(w http.ResponseWriter, _ *http.Request) { tell(w, g) })
	return mux, nil
}

// tell writes the shares of all clients in the present cycle.
func tell(w io.Writer, g *guard.Guard) {
	now, _ := g.Shares() // The guard always has fair share here.
	_, _ = fmt.Fprintf(w, "cycle %d, %d of %d used\n", now.Cycle, now.Admitted, now.Capacity)
	for _, c := range now.Clients {
		_, _ = fmt.Fprintf(w, "%-6s size %2d, borrowed %d, lent %d, served %2d, refused %2d\n",
			c.Client, c.Size, c.Borrowed, c.Lent, c.Admitted, c.Refused)
	}
}

// service has no limits of its own.
func service() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a sluice gate, 2 m wide\n")
	})
}
