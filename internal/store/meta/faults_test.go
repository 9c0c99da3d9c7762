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
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
)

// TestWrongAnswers: an invalid answer reaches no caller and ends the connection. The next
// connection works.
func TestWrongAnswers(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	wrong := map[string]func([]string) string{
		"an older server":        func([]string) string { return "ERROR\r\n" },
		"a client's error":       func([]string) string { return "CLIENT_ERROR bad command line format\r\n" },
		"another's answer":       func([]string) string { return "VA 1 c1 O999999\r\n1\r\n" },
		"nobody's answer":        func([]string) string { return "VA 1 c1\r\n1\r\n" },
		"another kind's answer":  func(w []string) string { return "HD " + opaque(w) + "\r\n" },
		"no end of line":         func(w []string) string { return "EN " + opaque(w) + "\n" },
		"an endless line":        func([]string) string { return long },
		"a value too short":      func(w []string) string { return "VA 1 c1 " + opaque(w) + "\r\n123\r\n" },
		"a value too long":       func(w []string) string { return "VA 99999999 c1 " + opaque(w) + "\r\n" + long },
		"a length of no number":  func(w []string) string { return "VA -1 c1 " + opaque(w) + "\r\n" },
		"a length without end":   func(w []string) string { return "VA 99999999999999999999999 " + opaque(w) + "\r\n" },
		"a version of no number": func(w []string) string { return "VA 1 cx " + opaque(w) + "\r\n1\r\n" },
		"bytes":                  func([]string) string { return "\x00\x80\xff\r\n\x00\r\n" },
		"HTTP":                   func([]string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" },
	}
	for name, say := range wrong {
		t.Run(name, func(t *testing.T) {
			bubble(t, meta.Config{MaxValue: 1000}, func(t scene) {
				c := t.client
				value, err := get(t.Context(), c, "k")
				if !errors.Is(err, meta.ErrProtocol) || !meta.Sent(err) || value != "" {
					t.Errorf("%q, %v: want a protocol fault of what was sent", value, err)
				}
				time.Sleep(time.Second) //nolint:forbidigo // because it is a bubble's time
				if value, err := get(t.Context(), c, "k"); err != nil || value != "k" {
					t.Errorf("afterwards: %q, %v", value, err)
				}
			}, answering(say), answering(honest))
		})
	}
}

// TestUnasked: an answer without a request ends the connection, before it can be taken for the next
// answer.
func TestUnasked(t *testing.T) {
	bubble(t, meta.Config{}, func(t scene) {
		c := t.client
		for range 3 {
			if value, err := get(t.Context(), c, "k"); err != nil || value != "k" {
				t.Errorf("%q, %v", value, err)
			}
			synctest.Wait()
		}
	}, answering(func(w []string) string { return honest(w) + "VA 1 c1 O2\r\nx\r\n" }), answering(honest))
}

// TestCut: a connection ends in the middle of the answers. Its requests fail, and may have been done.
func TestCut(t *testing.T) {
	whole := "VA 1 c1 O1\r\nk\r\n"
	for n := range len(whole) {
		bubble(t, meta.Config{}, func(t scene) {
			c := t.client
			if _, err := get(t.Context(), c, "k"); !meta.Sent(err) || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("cut after %d bytes: %v", n, err)
			}
		}, func(conn net.Conn, in *bufio.Reader) {
			in.ReadString('\n')
			io.WriteString(conn, whole[:n])
		})
	}
}

// TestSent: after the connection has ended, Sent is exact. Before, Sent is never false for a sent
// request.
func TestSent(t *testing.T) {
	failed := func(c *meta.Client, ctx context.Context) <-chan error {
		result := make(chan error, 1)
		go func() {
			_, err := get(ctx, c, "k")
			result <- err
		}()
		synctest.Wait()
		return result
	}
	bubble(t, meta.Config{StallTimeout: time.Minute}, func(t scene) {
		c := t.client
		first := failed(c, t.Context()) // The writer is blocked by this request.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second := failed(c, ctx) // This request waits behind the first one.
		if err := <-second; meta.Sent(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("what the writer never had: %v", err)
		}
		third := failed(c, t.Context())
		if err := <-first; meta.Sent(err) || !errors.Is(err, meta.ErrStalled) {
			t.Errorf("of which no byte was taken: %v", err)
		}
		if err := <-third; meta.Sent(err) || !errors.Is(err, meta.ErrStalled) {
			t.Errorf("what waited: %v", err)
		}
	}, deaf)
	bubble(t, meta.Config{}, func(t scene) {
		c := t.client
		if err := <-failed(c, t.Context()); !meta.Sent(err) {
			t.Errorf("of which one byte was taken: %v", err)
		}
	}, func(conn net.Conn, _ *bufio.Reader) { io.ReadFull(conn, make([]byte, 1)) })
}

// TestLeave: a caller leaves at its deadline, whatever the connection does.
func TestLeave(t *testing.T) {
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, config := range map[string]meta.Config{
		"no answer": {Dial: stage(mute)}, "no room": {Dial: stage(deaf)}, "no connection": {Dial: hang},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t scene) {
				c := t.client
				const patience = 20 * time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				_, err := get(ctx, c, "k")
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != patience {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if meta.Sent(err) != (name != "no connection") {
					t.Errorf("sent: %v", meta.Sent(err))
				}
				if _, err := get(ctx, c, "k"); !errors.Is(err, context.DeadlineExceeded) || meta.Sent(err) {
					t.Errorf("with no time at all: %v", err)
				}
			})
		})
	}
}

// TestLateAnswers: an answer that comes after its caller has left reaches no other caller.
func TestLateAnswers(t *testing.T) {
	slow := func(conn net.Conn, in *bufio.Reader) {
		answering(func(w []string) string {
			time.Sleep(30 * time.Millisecond) //nolint:forbidigo // because it is a bubble's time
			return honest(w)
		})(conn, in)
	}
	bubble(t, meta.Config{}, func(t scene) {
		c := t.client
		var group sync.WaitGroup
		served, gone := 0, 0
		var mu sync.Mutex
		for i := range 100 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*37%100)*20*time.Millisecond+1)
				defer cancel()
				key := fmt.Sprint("key", i)
				value, err := get(ctx, c, key)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && value == key:
					served++
				case errors.Is(err, context.DeadlineExceeded) && value == "":
					gone++
				default:
					t.Errorf("%s: %q, %v", key, value, err)
				}
			})
		}
		group.Wait()
		if served < 10 || gone < 10 {
			t.Errorf("%d served and %d gone: the test shows little", served, gone)
		}
	}, slow)
}
