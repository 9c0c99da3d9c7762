package proxy

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/openloop"
)

// prepare returns a function that loads the server at url, and a function that closes the connections. If this
// process generates the load, the connections are open before the load begins.
func (l *load) prepare(ctx context.Context, url, dir string) (
	send func(context.Context, time.Duration) (report, error), done func(), err error,
) {
	switch {
	case l.rate > 0:
		return l.paced(ctx, url)
	case l.grpc:
		return l.calls(ctx, url)
	}
	send = func(ctx context.Context, d time.Duration) (report, error) { return l.send(ctx, url, dir, d) }
	return send, func() {}, nil
}

// paced sends requests at a constant rate, for half of the time of other loads.
func (l *load) paced(ctx context.Context, url string) (
	send func(context.Context, time.Duration) (report, error), done func(), err error,
) {
	target := openloop.Target{URL: url + l.path, Connections: l.concurrent(), Key: keyValue, HTTP2: l.http2}
	switch {
	case l.http2:
		target.Connections = http2Connections
	case l.header != "":
		target.Connections = 0 // The header closes the connection.
	}
	if l.refused {
		target.Status = http.StatusTooManyRequests
	}
	open, err := openloop.Dial(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	send = func(ctx context.Context, d time.Duration) (report, error) {
		runtime.GC()
		// A collection of this process would delay requests.
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		began, n := time.Now(), max(1, int(l.rate*d.Seconds()/2))
		times, err := open.Send(ctx, n, time.Duration(float64(time.Second)/l.rate))
		if err != nil {
			return report{}, err
		}
		return newReport(times.Latency, time.Since(began)), nil
	}
	return send, open.Close, nil
}

// newReport sorts the latencies of the requests.
func newReport(latencies []time.Duration, took time.Duration) report {
	slices.Sort(latencies)
	n := len(latencies)
	return report{requests: n, took: took, p50: latencies[n/2], p99: latencies[n*99/100]}
}
