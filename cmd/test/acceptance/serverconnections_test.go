package acceptance

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
)

// crowdedConfiguration takes settings of server.grpc.
const crowdedConfiguration = `version: 1
max_memory: 16MiB
rules: []
server: {grpc: {address: "127.0.0.1:0", %s}, http: "off"}
domains:
  shop: {descriptors: [{key: user, limits: 1000000000/365d}]}
` + adminAnywhere

// rests waits until the process uses the same for some time after its first call, and gives the usage.
func (i *instance) rests(t *testing.T) usage {
	t.Helper()
	c, err := openPlain(i.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.call(t, user("first")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	var last usage
	same := 0
	eventually(t, "the usage to stay the same", func() bool {
		now := i.uses(t)
		if same++; now.goroutines != last.goroutines || now.files != last.files {
			same = 0
		}
		last = now
		return same == 10
	})
	return last
}

// settled waits until the process uses no more goroutines and files than before.
func (i *instance) settled(t *testing.T, before usage) {
	t.Helper()
	var now usage
	defer func() {
		if t.Failed() {
			_, profile := get(t, "http://"+i.Admin+"/debug/pprof/goroutine?debug=1")
			t.Logf("%v, before %v\n%s", now, before, profile)
		}
	}()
	eventually(t, fmt.Sprint("no more than ", before), func() bool {
		now = i.uses(t)
		return now.goroutines <= before.goroutines && now.files <= before.files
	})
}

// memoryOfCheck gives the most memory of the server in bytes, as headgate check prints it.
func memoryOfCheck(t *testing.T, path string) int64 {
	t.Helper()
	status, text, faults := call(t, "check", "--config", path)
	found := regexp.MustCompile(`memory of the server at most ([0-9.]+)([MG])iB`).FindStringSubmatch(text)
	if status != 0 || found == nil {
		t.Fatalf("check has status %d and prints\n%s%s", status, text, faults)
	}
	number, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(number * map[string]float64{"M": 1 << 20, "G": 1 << 30}[found[2]])
}

// TestServerManyConnections has 500 clients at the same time.
func TestServerManyConnections(t *testing.T) {
	t.Parallel()
	manyConnections(t, 500)
}

// manyConnections opens connections, calls on each of them twice, and closes them. A process has one open
// file for each: a test of 10,000 needs a limit of open files (ulimit -n) above that.
func manyConnections(t *testing.T, connections int) {
	t.Helper()
	i := launchServer(t, file(t, fmt.Sprintf(crowdedConfiguration, fmt.Sprintf("max_connections: %d", connections+50))))
	before := i.rests(t)
	all := make([]*plainClient, connections)
	defer func() {
		for _, c := range all {
			if c != nil {
				c.Close()
			}
		}
	}()
	began := time.Now()
	each(connections, func(n int) {
		c, err := openPlain(i.GRPC)
		if err != nil {
			t.Errorf("connection %d: %v: raise the limit of open files (ulimit -n)", n, err)
			return
		}
		all[n] = c
		if err := c.call(t, user(fmt.Sprint(n))); err != nil {
			t.Errorf("connection %d: %v", n, err)
		}
	})
	opened := time.Since(began).Round(time.Millisecond)
	if t.Failed() {
		return
	}
	began = time.Now()
	each(connections, func(n int) {
		if err := all[n].call(t, user(fmt.Sprint(n))); err != nil {
			t.Errorf("the second call on connection %d: %v", n, err)
		}
	})
	again, during := time.Since(began).Round(time.Millisecond), i.uses(t)
	for _, c := range all {
		c.Close()
	}
	i.settled(t, before)
	peaked, most := peak(t, i.command.Process.Pid), memoryOfCheck(t, i.path)
	t.Logf("%d connections with a call each in %v, and a second call in %v; before %v, during %v, after %v; peak %d MiB, check prints %d MiB",
		connections, opened, again, before, during, i.uses(t), peaked>>20, most>>20)
	if peaked > most || during.files < connections {
		t.Errorf("the server took %d MiB with %d files, and check prints %d MiB", peaked>>20, during.files, most>>20)
	}
}

// each calls do with the numbers below n, at most 64 at the same time.
func each(n int, do func(n int)) {
	var all sync.WaitGroup
	places := make(chan struct{}, 64)
	for k := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			do(k)
		})
	}
	all.Wait()
}

// attackOfCalls is what a hostile client does on a connection. do returns after the connection has ended,
// with the error that the client sees.
type attackOfCalls struct {
	name, settings string
	window         []http2.Setting
	most           int // The most connections; 0 is no bound.
	do             func(t *testing.T, c *plainClient, calls int) error
}

// attacksOfCalls keep calls in flight, in three ways. Each server has the setting that ends the way.
var attacksOfCalls = []attackOfCalls{
	{"calls without an end", "max_connection_age: 1s, max_connection_age_grace: 1s", nil, 0, func(t *testing.T, c *plainClient, calls int) error {
		t.Helper()
		c.sendCalls(t, calls, nil)
		for {
			frame, err := c.framer.ReadFrame()
			if err != nil {
				return err
			}
			_ = c.obey(frame) // A GOAWAY is no end yet.
		}
	}},
	{
		"no window for answers", "keepalive: 1s, keepalive_timeout: 1s",
		[]http2.Setting{{ID: http2.SettingInitialWindowSize}},
		0,
		func(t *testing.T, c *plainClient, calls int) error {
			t.Helper()
			c.sendCalls(t, calls, user("a"))
			_, err := io.Copy(io.Discard, c) // It answers no ping.
			return err
		},
	},
	{
		"answers left in the socket", "write_timeout: 1s, keepalive: 1h, max_streams: 1000",
		[]http2.Setting{{ID: http2.SettingInitialWindowSize, Val: math.MaxInt32}},
		4, // The answers take seconds to decide.
		func(t *testing.T, c *plainClient, _ int) error {
			t.Helper()
			_ = c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			_ = c.framer.WriteWindowUpdate(0, math.MaxInt32-65_535)
			large := user("a")
			for len(large.GetDescriptors()) < 1000 {
				large.Descriptors = append(large.Descriptors, large.GetDescriptors()[0])
			}
			c.sendCalls(t, 200, large) // The answers do not fit into the buffers of a socket.
			for {
				<-time.After(20 * time.Millisecond)
				if err := c.framer.WriteRawFrame(unknownFrame, 0, 0, nil); err != nil {
					return err
				}
			}
		},
	},
}

// unknownFrame is a type of frames that servers must ignore.
const unknownFrame = 0xbe

// sendCalls sends calls, and reads no answer. Without a request the calls have no end. It stops when the
// server has closed the connection.
func (c *plainClient) sendCalls(t *testing.T, calls int, request *ratelimitv3.RateLimitRequest) {
	t.Helper()
	for n := range calls {
		if _, err := c.Write(callFrames(t, uint32(2*n+1), request, request != nil)); err != nil {
			return
		}
	}
}

// TestServerCutsClients: clients keep their calls in flight. The server cuts them, and then has no goroutine
// and no file of them. Another client is served meanwhile.
func TestServerCutsClients(t *testing.T) {
	t.Parallel()
	cutClients(t, 2, 100)
}

func cutClients(t *testing.T, connections, calls int) {
	t.Helper()
	for _, a := range attacksOfCalls {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			connections := connections
			if a.most > 0 {
				connections = min(connections, a.most)
			}
			i := launchServer(t, file(t, fmt.Sprintf(crowdedConfiguration, a.settings)))
			before := i.rests(t)
			began := time.Now()
			var attack sync.WaitGroup
			for range connections {
				attack.Go(func() {
					client, err := openPlain(i.GRPC, a.window...)
					if err != nil {
						t.Error(err)
						return
					}
					defer client.Close()
					_ = client.SetDeadline(time.Now().Add(4 * patience)) // The machine may be busy.
					if err := a.do(t, client, calls); errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("the server did not cut the client within %v", 4*patience)
					}
				})
			}
			ended := make(chan struct{})
			go func() { attack.Wait(); close(ended) }()
			serves(t, i)
			during := usageUntil(t, i, ended)
			i.settled(t, before)
			peaked, most := peak(t, i.command.Process.Pid), memoryOfCheck(t, i.path)
			t.Logf("%d connections: before %v, during %v; cut after %v; peak %d MiB, check prints %d MiB", connections, before, during,
				time.Since(began).Round(time.Millisecond), peaked>>20, most>>20)
			if peaked > most {
				t.Errorf("the server took %d MiB, and check prints %d MiB", peaked>>20, most>>20)
			}
			if during.files <= before.files || during.goroutines < before.goroutines+connections {
				t.Errorf("the server had %v during the attack, and %v before", during, before)
			}
			serves(t, i)
		})
	}
}

// serves checks that a new client is answered.
func serves(t *testing.T, i *instance) {
	t.Helper()
	c, err := openPlain(i.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.call(t, user("other")); err != nil {
		t.Errorf("another client: %v", err)
	}
}
