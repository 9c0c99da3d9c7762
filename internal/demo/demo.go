package demo

import (
	"context"
	_ "embed" // It fills rules.
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/headgate/headgate/guard"
)

//go:embed headgate.yaml
var rulesTable []byte

// Rules gives the configuration of the demo, as a file.
func Rules() (name string, text []byte) { return "demo/headgate.yaml", rulesTable }

// Options say what to show.
type Options struct {
	// Proxy and Admin are where the clients and a curious user go.
	Proxy, Admin string
	Upstream     *Upstream
	Rules        []guard.Rule
	Clients      []*Client
	Out          io.Writer
	// Terminal draws one table again and again; otherwise there is a line a second.
	Terminal bool
	// Every is how often, a second unless told otherwise.
	Every time.Duration
}

// requestTimeout is beyond what any request of the demo takes.
const requestTimeout = 10 * time.Second

// Run lets the clients ask until ctx ends, then gives a summary.
func Run(ctx context.Context, o Options) error {
	if o.Every == 0 {
		o.Every = time.Second
	}
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce}
	defer transport.CloseIdleConnections()
	with := &http.Client{Transport: transport, Timeout: requestTimeout}
	shown := &screen{Options: o, began: time.Now()}
	if err := shown.open(); err != nil {
		return err
	}
	var asking sync.WaitGroup
	for _, c := range o.Clients {
		asking.Go(func() { c.run(ctx, "http://"+o.Proxy, with) })
	}
	err := shown.refresh(ctx)
	asking.Wait()
	if err != nil {
		return fmt.Errorf("demo: the output cannot be written: %w", err)
	}
	return shown.close()
}
