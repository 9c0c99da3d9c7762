package demo

import (
	"context"
	_ "embed" // It fills settingsTable.
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

//go:embed headgate.yaml
var settingsTable []byte

// Settings gives the configuration of the demo, as a file.
func Settings() (name string, text []byte) { return "demo/headgate.yaml", settingsTable }

// Options say what to show.
type Options struct {
	// Proxy and Admin are where the clients and a curious user go.
	Proxy, Admin string
	Upstream     *Upstream
	// Clients are the names of those who ask, and Acts what for: Clients() and Story().
	Clients []string
	Acts    []Act
	Out     io.Writer
	// Terminal draws one table again and again; otherwise there is a line a cycle.
	Terminal bool

	network http.RoundTripper // for tests; nil is that of this machine
}

// requestTimeout is beyond what any request of the demo takes.
const requestTimeout = 10 * time.Second

// Run lets the clients ask from the next cycle on until ctx ends, then gives a summary.
func Run(ctx context.Context, o Options) error {
	with := &http.Client{Transport: o.network, Timeout: requestTimeout}
	if with.Transport == nil {
		with.Transport = &http.Transport{MaxIdleConnsPerHost: atOnce}
	}
	defer with.CloseIdleConnections()
	now, err := ask(ctx, with, o.Admin)
	if err != nil {
		return fmt.Errorf("demo: the proxy does not tell of its shares: %w", err)
	}
	when := schedule{began: now.Ends, cycle: time.Duration(now.CycleSeconds * float64(time.Second))}
	shown := &screen{Options: o, with: with, when: when}
	for i, name := range o.Clients {
		shown.clients = append(shown.clients, &client{
			name: name, demand: func(cycle int) int { return o.Acts[actAt(o.Acts, cycle)].Demand[i] },
		})
	}
	if err := shown.open(now.Capacity); err != nil {
		return err
	}
	var asking sync.WaitGroup
	for _, c := range shown.clients {
		asking.Go(func() { c.run(ctx, "http://"+o.Proxy+"/", with, when) })
	}
	err = shown.follow(ctx)
	asking.Wait()
	if err != nil {
		return fmt.Errorf("demo: the output cannot be written: %w", err)
	}
	return shown.close()
}
