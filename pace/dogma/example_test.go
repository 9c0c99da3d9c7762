package dogma_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/dogma"
)

// A document on a Central Dogma server lets 96 instances share 48,000 calls a second. This
// example is the fourth instance.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			<-r.Context().Done() // The document does not change.
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"revision": 7, "path": "/mail.json", "type": "JSON", "content": {"limit": "48000/s", "instances": 96}}`)
	}))
	defer server.Close()

	source, err := dogma.New(dogma.Config{
		URL: server.URL, Project: "campaign", Repository: "limits", Path: "/mail.json", Index: 3,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, err := pace.New(pace.Config{Provider: "mail", Source: source, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close()

	ctx := context.Background()
	if err := mail.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mail.Acquire(ctx, 10*time.Second))
	stats := mail.Stats()
	fmt.Println(stats.Limit, stats.Instances, stats.Index, stats.Revision)
	// Output:
	// <nil>
	// 48000 96 3 7
}
