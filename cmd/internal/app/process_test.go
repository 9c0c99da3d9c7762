package app

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/heap/bounds"
	"github.com/headgate/headgate/cmd/internal/proxy"
	"github.com/headgate/headgate/cmd/internal/server"
	"github.com/headgate/headgate/internal/config"
)

func setMemoryLimit(t *testing.T, limit int64) {
	t.Helper()
	former := debug.SetMemoryLimit(limit)
	t.Cleanup(func() { debug.SetMemoryLimit(former) })
}

// TestPressureFollowsTheLocalCache: a reload that changes the local cache changes the bounds of memory too. Its memory counts from the
// start: a table is allocated at once.
func TestPressureFollowsTheLocalCache(t *testing.T) {
	const settings = "server: {grpc: \"127.0.0.1:0\", max_traffic_memory: 128MiB, rate_limit_service: {local_cache: %dMiB}}"
	o := serverOptions(t, fmt.Sprintf(settings, 1))
	o.bounded = true // As Run does.
	t.Setenv("GOMEMLIMIT", "")
	setMemoryLimit(t, bounds.Heap(o.Config, o.Config.ServerMemoryBound()))
	next := o.Config
	o.Load = func() (*config.Config, error) { return next, nil }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Stop() })
	var front *server.Server
	for _, c := range i.components {
		if d, ok := c.(*server.Server); ok {
			front = d
		}
	}
	before := front.Bounds()
	objects := settledHeap()
	next = serverConfig(t, fmt.Sprintf(settings, 64))
	if err := i.Reload(); err != nil {
		t.Fatal(err)
	}
	const more, garbage = 63 << 20, 63 << 20 / 8
	now := front.Bounds()
	if now.Fixed-before.Fixed != more || now.Most-before.Most < more || now.Most-before.Most > more+garbage {
		t.Errorf("the bounds are %+v, after %+v", now, before)
	}
	if after := settledHeap(); after-objects < more/2 {
		t.Errorf("%d bytes were live, and are %d", objects, after)
	}
}

// settledHeap gives the live bytes once collections free nothing more: other tests have left garbage, and finalizers and cleanups keep some
// of it for several collections.
func settledHeap() int64 {
	const same = 1 << 20
	last := int64(math.MaxInt64)
	for range 20 {
		runtime.GC()
		live, _ := heap.Live()
		if last-live < same {
			return live
		}
		last = live
	}
	return last
}

// TestProxyFollowsTheLocalCache: headgate proxy has the local cache of a section server too: its bound counts the cache, and follows a
// reload.
func TestProxyFollowsTheLocalCache(t *testing.T) {
	const settings = "server: {grpc: \"127.0.0.1:0\", rate_limit_service: {local_cache: %dMiB}}"
	c := launch(t, fmt.Sprintf(settings, 1))
	var front *proxy.Component
	for _, part := range c.components {
		if p, ok := part.(*proxy.Component); ok {
			front = p
		}
	}
	before, bound := front.Bounds(), c.next.MemoryBound()
	c.reload(t, fmt.Sprintf(settings, 64), adminPorts)
	const more = 63 << 20
	if now := front.Bounds(); now.Fixed-before.Fixed != more || c.next.MemoryBound()-bound < more {
		t.Errorf("the bounds are %+v of %d, after %+v of %d", now, c.next.MemoryBound(), before, bound)
	}
}
