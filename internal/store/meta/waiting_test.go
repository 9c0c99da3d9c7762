package meta_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
)

// TestStall: with a silent server, waiting requests fail after the stall timeout. Later requests
// fail at once, until the server greets again.
func TestStall(t *testing.T) {
	const stall = 100 * time.Millisecond
	silent := func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() { defer there.Close(); io.Copy(io.Discard, there) }()
		return here, nil
	}
	first, later := stage(mute), silent
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := first
		first = later
		return d(ctx, network, addr)
	}
	bubble(t, meta.Config{StallTimeout: stall, Dial: dial}, func(t scene) {
		c := t.client
		began := time.Now()
		_, err := get(t.Context(), c, "k")
		if elapsed := time.Since(began); !errors.Is(err, meta.ErrStalled) || !meta.Sent(err) || elapsed < stall || elapsed > stall*5/4 {
			t.Errorf("%v after %v", err, elapsed)
		}
		for range 100 {
			began := time.Now()
			if _, err := get(t.Context(), c, "k"); err == nil || meta.Sent(err) || time.Since(began) != 0 {
				t.Fatalf("%v after %v, want a failure at once", err, time.Since(began))
			}
			time.Sleep(stall) //nolint:forbidigo // because it is a bubble's time
		}
	})
}

// TestStallUnderLoad: a silent server is detected although new requests are sent.
func TestStallUnderLoad(t *testing.T) {
	const stall = 100 * time.Millisecond
	bubble(t, meta.Config{StallTimeout: stall}, func(t scene) {
		c := t.client
		began := time.Now()
		var err error
		for n := 0; n < 1000 && !errors.Is(err, meta.ErrStalled); n++ {
			ctx, cancel := context.WithTimeout(t.Context(), stall/20)
			_, err = get(ctx, c, "k")
			cancel()
		}
		if elapsed := time.Since(began); elapsed > 2*stall {
			t.Errorf("%v after %v", err, elapsed)
		}
	}, mute)
}

// TestSlowWrite: a long request on a slow network is no stall.
func TestSlowWrite(t *testing.T) {
	slow := func(conn net.Conn, in *bufio.Reader) {
		line, err := in.ReadString('\n')
		if err != nil {
			return // The client has closed.
		}
		for range (1 << 20) / chunk {
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // because it is a bubble's time
			io.CopyN(io.Discard, in, chunk)
		}
		in.ReadString('\n')
		fmt.Fprintf(conn, "HD c1 %s\r\n", opaque(strings.Fields(line)))
	}
	bubble(t, meta.Config{StallTimeout: 200 * time.Millisecond}, func(t scene) {
		c := t.client
		var a [1]meta.Response
		began := time.Now()
		err := c.Do(t.Context(), []meta.Request{{Kind: meta.Set, Key: "k", Value: make([]byte, 1<<20)}}, a[:])
		if elapsed := time.Since(began); err != nil || elapsed < 500*time.Millisecond {
			t.Errorf("%v after %v", err, elapsed)
		}
	}, slow)
}

// chunk is how much the slow server reads at once: as much as the client writes at once.
const chunk = 64 << 10

// TestIdle: an idle connection is kept for any time.
func TestIdle(t *testing.T) {
	var dials atomic.Int64
	dial := stage(answering(honest))
	counting := func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return dial(ctx, network, addr)
	}
	bubble(t, meta.Config{StallTimeout: time.Second, Dial: counting}, func(t scene) {
		c := t.client
		for range 3 {
			if _, err := get(t.Context(), c, "k"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour) //nolint:forbidigo // because it is a bubble's time
		}
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections were made", n)
		}
	})
}

// TestBackoff: while nothing listens, requests fail at once, and there is about one attempt to
// connect a second.
func TestBackoff(t *testing.T) {
	var dials atomic.Int64
	refuse := func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, errors.New("nothing listens")
	}
	bubble(t, meta.Config{Dial: refuse}, func(t scene) {
		c := t.client
		for range 10_000 {
			if _, err := get(t.Context(), c, "k"); err == nil || meta.Sent(err) || !strings.Contains(err.Error(), "nothing listens") {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // because it is a bubble's time
		}
		if n := dials.Load(); n < 100 || n > 210 {
			t.Errorf("%d attempts in 100 s", n)
		}
	})
}

// TestHangUp: a server closes each connection after the greeting. The client waits before each new
// attempt.
func TestHangUp(t *testing.T) {
	var dials atomic.Int64
	dial := stage(func(net.Conn, *bufio.Reader) {})
	counting := func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return dial(ctx, network, addr)
	}
	bubble(t, meta.Config{Dial: counting}, func(t scene) {
		c := t.client
		get(t.Context(), c, "k")
		time.Sleep(100 * time.Second) //nolint:forbidigo // because it is a bubble's time
		if n := dials.Load(); n < 100 || n > 210 {
			t.Errorf("%d attempts in 100 s", n)
		}
	})
}

// TestBusy: at most MaxWaiting requests wait. Further ones fail at once, unsent.
func TestBusy(t *testing.T) {
	const most = 10
	bubble(t, meta.Config{MaxWaiting: most, StallTimeout: time.Hour}, func(t scene) {
		c := t.client
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var group sync.WaitGroup
		for range most {
			group.Go(func() {
				if _, err := get(ctx, c, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for range 3 { // The requests of callers that have left still wait for their answers.
			if _, err := get(t.Context(), c, "k"); !errors.Is(err, meta.ErrBusy) || meta.Sent(err) {
				t.Errorf("one more: %v", err)
			}
			group.Wait()
		}
	}, mute)
}

// counted counts the writes of a connection.
type counted struct {
	net.Conn

	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestSharedWrites: all requests that arrive during a write share the next one.
func TestSharedWrites(t *testing.T) {
	var writes atomic.Int64
	var open atomic.Bool
	late := func(conn net.Conn, in *bufio.Reader) {
		for !open.Load() {
			time.Sleep(time.Millisecond) //nolint:forbidigo // because it is a bubble's time
		}
		// On a pipe, each side waits for the other: answers wait until everything is read.
		var lines []string
		for range 101 {
			line, _ := in.ReadString('\n')
			lines = append(lines, honest(strings.Fields(line)))
		}
		io.WriteString(conn, strings.Join(lines, ""))
		mute(conn, in)
	}
	dial := stage(late)
	counting := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return counted{conn, &writes}, err
	}
	bubble(t, meta.Config{Dial: counting}, func(t scene) {
		c := t.client
		var group sync.WaitGroup
		for i := range 101 {
			group.Go(func() {
				if key := fmt.Sprint("key", i); i > 0 {
					if value, err := get(t.Context(), c, key); err != nil || value != key {
						t.Errorf("%q, %v", value, err)
					}
					return
				}
				get(t.Context(), c, "first")
			})
			if i == 0 {
				synctest.Wait() // The write is in progress.
			}
		}
		synctest.Wait()
		open.Store(true)
		group.Wait()
		if n := writes.Load(); n != 3 {
			t.Errorf("%d writes, want 3: the greeting, the first, and the rest", n)
		}
	})
}

// TestOneIsDown: one connection cannot be made, and the other serves all requests.
func TestOneIsDown(t *testing.T) {
	dials := make(chan int, 1)
	dials <- 0
	works := stage(answering(honest))
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		n := <-dials
		dials <- n + 1
		if n > 0 {
			return nil, errors.New("no more connections")
		}
		return works(ctx, network, addr)
	}
	bubble(t, meta.Config{Dial: dial, Connections: 2}, func(t scene) {
		c := t.client
		failures := 0
		for range 1000 {
			if _, err := get(t.Context(), c, "k"); err != nil {
				failures++
			}
		}
		if failures > 1 {
			t.Errorf("%d of 1000 failed, and only the one that tried the second connection may", failures)
		}
	})
}

// TestClose: Close fails waiting and later requests. A second Close does nothing.
func TestClose(t *testing.T) {
	bubble(t, meta.Config{}, func(t scene) {
		c := t.client
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if _, err := get(t.Context(), c, "k"); !errors.Is(err, meta.ErrClosed) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		c.Close()
		group.Wait()
		c.Close()
		if _, err := get(t.Context(), c, "k"); !errors.Is(err, meta.ErrClosed) || meta.Sent(err) {
			t.Error(err)
		}
	}, mute)
}

// TestConfig: New refuses an invalid setting.
func TestConfig(t *testing.T) {
	for _, config := range []meta.Config{
		{},
		{Addr: "host"},
		{Addr: "h:1", Connections: -1},
		{Addr: "h:1", Connections: 1000},
		{Addr: "h:1", MaxWaiting: -1},
		{Addr: "h:1", MaxValue: 2 << 20},
		{Addr: "h:1", StallTimeout: -1},
		{Addr: "h:1", DialTimeout: 1},
		{Addr: "h:1", MaxBackoff: 1},
	} {
		if _, err := meta.New(config); err == nil {
			t.Errorf("%+v is taken", config)
		}
	}
}
