// Command fairshare is a service of net/http whose capacity is shared by its clients.
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

// shared puts fair share in front of a handler, and beside it a page that tells who
// has what.
func shared(next http.Handler) (http.Handler, error) {
	share, err := guard.NewFairShare(10, "header:X-Client-Id")
	if err != nil {
		return nil, err
	}
	share.Cycle = 10 * time.Second // Long enough to watch; a second is usual.
	g, err := guard.New(guard.Config{FairShare: share})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", httplimit.New(g, httplimit.Options{})(next))
	mux.HandleFunc("GET /shares", func(w http.ResponseWriter, _ *http.Request) { tell(w, g) })
	return mux, nil
}

// tell writes who has what of the cycle.
func tell(w io.Writer, g *guard.Guard) {
	now, _ := g.Shares() // There is fair share always.
	_, _ = fmt.Fprintf(w, "cycle %d, %d of %d used\n", now.Cycle, now.Admitted, now.Capacity)
	for _, c := range now.Clients {
		_, _ = fmt.Fprintf(w, "%-6s size %2d, borrowed %d, lent %d, served %2d, refused %2d\n",
			c.Client, c.Size, c.Borrowed, c.Lent, c.Admitted, c.Refused)
	}
}

// service knows nothing of shares.
func service() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a sluice gate, 2 m wide\n")
	})
}
