package httppace_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/httppace"
)

// A provider accepts two requests an hour from all instances of this program. There is one
// instance. The third request would have to wait for longer than its deadline.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()

	plan, err := pace.EvenPlan(2, time.Hour, 1, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The clock stands at the start of an hour, so that the example always ends within it. Programs
	// leave Wall out.
	wall := func() headgate.Instant { return 0 }
	quiet := slog.New(slog.DiscardHandler)
	provider, err := pace.New(pace.Config{Provider: "mail", Source: pace.Static(plan), Wall: wall, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()

	paced, err := httppace.New(httppace.Config{Hosts: map[string]*pace.Pacer{"127.0.0.1": provider}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: paced, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for range 3 {
		resp, err := client.Get(server.URL)
		if errors.Is(err, pace.ErrTimeout) {
			fmt.Println("not now")
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	// Output:
	// 200
	// 200
	// not now
}

// Each user of a provider has its own limit, and therefore its own pacer.
func ExampleConfig_pacer() {
	plan, err := pace.EvenPlan(100, time.Second, 1, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := pace.New(pace.Config{Provider: "a", Source: pace.Static(plan), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	users := map[string]*pace.Pacer{"a": a}

	paced, err := httppace.New(httppace.Config{
		Pacer:  func(req *http.Request) *pace.Pacer { return users[req.Header.Get("Authorization")] },
		Strict: true, // requests to other hosts fail
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: paced}
	resp, err := client.Get("http://api.example.com/")
	if err == nil {
		_ = resp.Body.Close()
	}
	fmt.Println(errors.Is(err, httppace.ErrNoPacer))
	// Output:
	// true
}
