package demo

import (
	"context"
	_ "embed" // For settingsTable.
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

//go:embed headgate.yaml
var settingsTable []byte

// Settings returns the configuration of the demo, as the name and the text of a file.
func Settings() (name string, text []byte) { return "demo/headgate.yaml", settingsTable }

// Options describe a demo.
type Options struct {
	// Proxy and Admin are the addresses of the proxy and of its admin listener.
	Proxy, Admin string
	Upstream     *Upstream
	// Clients are the names of the clients, and Acts their demand. See Clients and Story.
	Clients []string
	Acts    []Act
	Out     io.Writer
	// Terminal updates one table in place. Otherwise each cycle prints a line.
	Terminal bool
	// Picture gets an SVG of the cycles when the demo ends, if it is not nil.
	Picture io.Writer

	network http.RoundTripper // For tests. nil means the network of this machine.
}

// requestTimeout is longer than any request of the demo takes.
const requestTimeout = 10 * time.Second

// Run sends the clients' requests from the next cycle until ctx ends. It then prints a summary.
func Run(ctx context.Context, o Options) error {
	with := &http.Client{Transport: o.network, Timeout: requestTimeout}
	if with.Transport == nil {
		with.Transport = &http.Transport{MaxIdleConnsPerHost: maxInFlight}
	}
	defer with.CloseIdleConnections()
	now, err := query(ctx, with, o.Admin)
	if err != nil {
		return fmt.Errorf("demo: the proxy's shares could not be read: %w", err)
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
	var sending sync.WaitGroup
	for _, c := range shown.clients {
		sending.Go(func() { c.run(ctx, "http://"+o.Proxy+"/", with, when) })
	}
	err = shown.follow(ctx)
	sending.Wait()
	if err != nil {
		return fmt.Errorf("demo: write the output: %w", err)
	}
	return shown.close()
}
