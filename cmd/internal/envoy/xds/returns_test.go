package xds

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestServerReturns ends the server for different times. It returns with other content under the
// same version, which must be in force within 2 s.
func TestServerReturns(t *testing.T) {
	all := []time.Duration{0, 100 * time.Millisecond, time.Second, 10 * time.Second, 2 * time.Minute, time.Hour}
	// The race detector of Go 1.26 can crash where goroutines of a bubble run timers at once. A long time has thousands of timers.
	for _, away := range all[:race.Fewer(len(all), 4)] {
		t.Run(away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n network
				c := start(t, n.listen())
				c.publish(t, "v1", domain("first", "before"))
				i := follow(t, n.source(t, Config{}), nil)
				i.awaitValue(t, "before")
				n.close()
				c.stop()
				<-time.After(away)

				back := time.Now()
				c = start(t, n.listen())
				c.publish(t, "v1", domain("first", "after"))
				i.awaitValue(t, "after")
				if _, _, since := i.known(); since.Sub(back) > 2*time.Second {
					t.Errorf("in force %v after the return, want 2 s at most", since.Sub(back))
				}
				synctest.Wait()
				requests, _ := c.received()
				if requests[0].GetVersionInfo() != "" || requests[0].GetResponseNonce() != "" {
					t.Errorf("the first message of a stream is %v, want no version and no nonce", requests[0])
				}
				_, faults, _ := i.known()
				if most := 1 + int(away/faultEvery); len(faults) < 1 || len(faults) > most {
					t.Errorf("there are %d faults after %v, want 1 to %d: %v", len(faults), away, most, faults)
				}
				i.stop(t)
				c.stop()
			})
		})
	}
}

// TestServerReturnsOnLoopback is TestServerReturns with real sockets and a real clock. The soak
// test checks the time.
func TestServerReturnsOnLoopback(t *testing.T) { returns(t, 100*time.Millisecond, 20*time.Second) }

// returns ends a server on loopback for a time, and checks how long its return takes.
func returns(t *testing.T, away, most time.Duration) {
	t.Helper()
	l := loopback(t, "127.0.0.1:0")
	c := start(t, l)
	c.publish(t, "v1", domain("first", "before"))
	s, err := New(Config{Server: l.Addr().String(), NodeID: node})
	if err != nil {
		t.Fatal(err)
	}
	i := follow(t, s, nil)
	i.awaitValue(t, "before")
	c.stop()
	<-time.After(away)

	l = loopback(t, l.Addr().String())
	back := time.Now()
	c = start(t, l)
	c.publish(t, "v1", domain("first", "after"))
	i.awaitValue(t, "after")
	if _, _, since := i.known(); since.Sub(back) > most {
		t.Errorf("in force %v after the return, want %v at most", since.Sub(back), most)
	}
}

// loopback listens on an address.
func loopback(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSameContent returns a server with the same content. The source acknowledges it, and calls
// apply no second time.
func TestSameContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		c := start(t, n.listen())
		c.publish(t, "v1", domain("first", "same"), domain("second", "same"))
		i := follow(t, n.source(t, Config{}), nil)
		i.awaitValue(t, "same")
		n.close()
		c.stop()
		c = start(t, n.listen())
		c.publish(t, "v2", domain("second", "same"), domain("first", "same"))
		await(t, "acknowledged", func() bool {
			requests, _ := c.received()
			return len(requests) == 2 && requests[1].GetVersionInfo() == "v2"
		})
		if sets, _, _ := i.known(); len(sets) != 1 {
			t.Errorf("apply was called %d times, want once", len(sets))
		}
		i.stop(t)
		c.stop()
	})
}

// TestRefusedAfterReturn returns a server with a refused configuration under the version in force. The
// refusal must not name this version, because a server would take the message for an acknowledgement.
func TestRefusedAfterReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		c := start(t, n.listen())
		c.publish(t, "v1", domain("first", "good"))
		i := follow(t, n.source(t, Config{}), refuseBad)
		i.awaitValue(t, "good")
		n.close()
		c.stop()
		c = start(t, n.listen())
		c.publish(t, "v1", domain("first", "bad"))
		await(t, "refused", func() bool {
			requests, _ := c.received()
			return len(requests) == 2
		})
		if requests, _ := c.received(); requests[1].GetVersionInfo() != "" || requests[1].GetErrorDetail() == nil {
			t.Errorf("got %v, want a refusal without a version", requests[1])
		}
		c.publish(t, "v2", domain("first", "corrected"))
		i.awaitValue(t, "corrected")
		i.stop(t)
		c.stop()
	})
}

// TestSilentServer leaves a server without an answer to pings. The source opens a new stream.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		silent := n.listen()
		var conns []net.Conn
		go func() {
			for {
				conn, err := silent.Accept()
				if err != nil {
					return
				}
				conns = append(conns, conn)
				_, _ = conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS, and then silence
				go func() {
					for buf := make([]byte, 1024); ; {
						if _, err := conn.Read(buf); err != nil {
							return
						}
					}
				}()
			}
		}()
		i := follow(t, n.source(t, Config{}), nil)
		<-time.After(firstPing)
		synctest.Wait()
		c := start(t, n.listen())
		c.publish(t, "v1", domain("first", "good"))
		began := time.Now()
		i.awaitValue(t, "good")
		if elapsed := time.Since(began); elapsed > pingTimeout+2*time.Second {
			t.Errorf("a new stream took %v, want at most the time of a ping", elapsed)
		}
		i.stop(t)
		c.stop()
		silent.Close()
		for _, conn := range conns {
			conn.Close()
		}
	})
}

// TestRefusedPings follows a server with gRPC's own policy, which allows a ping in 5 minutes. Each
// refusal of pings doubles their interval, so a day has few of them.
func TestRefusedPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		c := start(t, n.listen())
		c.publish(t, "v1", domain("first", "good"))
		i := follow(t, n.source(t, Config{}), nil)
		<-time.After(24 * time.Hour)
		_, faults, _ := i.known()
		if len(faults) < 1 || len(faults) > 5 {
			t.Errorf("the stream was lost %d times in a day, want 1 to 5: %v", len(faults), faults)
		}
		i.stop(t)
		c.stop()
	})
}
