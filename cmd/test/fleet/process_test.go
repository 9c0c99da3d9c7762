//go:build unix

package fleet

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap" //nolint:depguard // etcd's client accepts only a zap logger; this one discards all lines
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/etcd"
)

// settings describes a process. The test passes it in the process's environment.
type settings struct {
	Endpoint  string         `json:"endpoint"`
	ID        string         `json:"id"`
	OnLoss    etcd.OnLoss    `json:"on_loss"`
	Smoothing pace.Smoothing `json:"smoothing"`
	Depth     int            `json:"depth"`  // number of waiters at any time
	Counts    string         `json:"counts"` // path of the file of counts
	First     int64          `json:"first"`  // Unix time of the first count in the file
	// Rate is the number of units that the process requests a second. With 0, Depth callers wait all the time.
	Rate float64 `json:"rate,omitempty"`
}

const settingsVariable = "HEADGATE_TEST_FLEET"

// TestMain runs the tests. In a process that a fleet started, it serves instead.
func TestMain(m *testing.M) {
	text := os.Getenv(settingsVariable)
	if text == "" {
		flag.Parse()
		_ = flag.Set("test.parallel", "8") // The tests mostly wait for leases and edges.
		os.Exit(m.Run())
	}
	var o settings
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := o.serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve requests units until it receives SIGTERM.
func (o settings) serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	counts, err := openCounts(o.Counts)
	if err != nil {
		return err
	}
	again := backoff.DefaultConfig
	again.MaxDelay = time.Second
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{o.Endpoint}, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: time.Second})},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	source, err := etcd.New(etcd.Config{
		Client: client, Provider: provider, ID: o.ID, TTL: ttl, Propagation: propagation,
		OnLoss: o.OnLoss, Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	pacer, err := pace.New(pace.Config{Provider: provider, Source: source, Smoothing: o.Smoothing})
	if err != nil {
		return err
	}
	defer pacer.Close()
	var waiting atomic.Int64
	given := func(at headgate.Instant, err error) {
		waiting.Add(-1)
		if second := int64(at)/int64(time.Second) - o.First; err == nil && second >= 0 && second < seconds {
			atomic.AddInt64(&counts[second], 1)
		}
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	begun, asked := time.Now(), int64(0)
	for ctx.Err() == nil {
		want := int64(o.Depth) - waiting.Load()
		if o.Rate > 0 {
			want = int64(time.Since(begun).Seconds()*o.Rate) - asked
			asked += want
		}
		for range want {
			waiting.Add(1)
			pacer.AcquireFunc(1, pace.Forever, given)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// seconds is the number of seconds in a file of counts.
const seconds = 600

// openCounts maps a file of counts into memory. The counts remain when the process is killed.
func openCounts(path string) ([]int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(seconds * 8); err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, seconds*8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*int64)(unsafe.Pointer(&data[0])), seconds), nil
}
