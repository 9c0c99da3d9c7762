package meta_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
)

// These tests play the server, on a pipe and in a synctest bubble, where every wait is exact.

// actor plays a server on one connection, after the greeting.
type actor func(conn net.Conn, in *bufio.Reader)

// stage gives a Dial function. The n-th actor plays its n-th connection, and the last actor plays
// all later ones.
func stage(actors ...actor) func(context.Context, string, string) (net.Conn, error) {
	var mu sync.Mutex
	n := 0
	return func(context.Context, string, string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		act := actors[min(n, len(actors)-1)]
		n++
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			in := bufio.NewReader(there)
			if line, err := in.ReadString('\n'); err != nil || line != "mn\r\n" {
				return
			}
			if _, err := io.WriteString(there, "MN\r\n"); err == nil {
				act(there, in)
			}
		}()
		return here, nil
	}
}

// answering answers every line with the result of say.
func answering(say func(words []string) string) actor {
	return func(conn net.Conn, in *bufio.Reader) {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := io.WriteString(conn, say(strings.Fields(line))); err != nil {
				return
			}
		}
	}
}

// opaque gives the O flag of a request.
func opaque(words []string) string { return words[len(words)-1] }

// honest answers every Get with its key as the value.
func honest(words []string) string {
	return fmt.Sprintf("VA %d c1 %s\r\n%s\r\n", len(words[1]), opaque(words), words[1])
}

// mute reads everything and answers nothing.
func mute(_ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) }

// deaf reads nothing until the client closes. A read with a passed deadline reads nothing either,
// and reports that the deadline has passed.
func deaf(conn net.Conn, _ *bufio.Reader) {
	conn.SetReadDeadline(time.Unix(1, 0))
	for {
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // because it is a bubble's time
	}
}

func get(ctx context.Context, c *meta.Client, key string) (string, error) {
	var a [1]meta.Response
	err := c.Do(ctx, []meta.Request{{Kind: meta.Get, Key: key}}, a[:])
	return string(a[0].Value), err
}

// scene is a test in a bubble, and its client.
type scene struct {
	*testing.T

	client *meta.Client
}

// bubble runs a test in a synctest bubble, with a client of one connection to the actors.
func bubble(t *testing.T, config meta.Config, test func(t scene), actors ...actor) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config.Addr, config.Connections = "server:11211", max(1, config.Connections)
		if config.Dial == nil {
			config.Dial = stage(actors...)
		}
		c, err := meta.New(config)
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(time.Second) //nolint:forbidigo // because the actors leave a bubble's moment later
		defer c.Close()
		test(scene{t, c})
	})
}
