package redisclients_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// holder is a proxy that can hold answers back. Commands always pass.
type holder struct {
	listener net.Listener
	target   string
	connect  sync.WaitGroup
	held     sync.RWMutex // locked while answers are held
}

// hold starts a proxy in front of target.
func hold(t *testing.T, target string) *holder {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{listener: listener, target: target}
	h.connect.Go(h.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		h.connect.Wait()
	})
	return h
}

func (h *holder) accept() {
	for {
		client, err := h.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", h.target)
		if err != nil {
			_ = client.Close()
			return
		}
		h.connect.Go(func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		})
		h.connect.Go(func() {
			h.answers(client, server)
			_ = client.Close()
		})
	}
}

// answers copies from server to client, except while answers are held.
func (h *holder) answers(client, server net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		h.held.RLock()
		_, err = client.Write(buffer[:n])
		h.held.RUnlock()
		if err != nil {
			return
		}
	}
}

// warm fills the client's pool with idle connections.
func warm(t *testing.T, client *redis.Client) {
	t.Helper()
	conns := make([]*redis.Conn, 0, 8)
	for range cap(conns) {
		conn := client.Conn()
		conns = append(conns, conn)
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLateAnswerOfGoRedis says why docs/redis-protocol.md wants MaxRetries -1: otherwise go-redis sends a command
// with a late answer again, and each copy spends units.
func TestLateAnswerOfGoRedis(t *testing.T) {
	t.Parallel()
	at := start(t, new(clock))
	for _, test := range []struct {
		retries int
		left    string
	}{{-1, "9"}, {0, "6"}} {
		key := fmt.Sprint("late", test.retries)
		spendLate(t, at, key, test.retries)
		waitLeft(t, goRedis(t, at, 3), key, test.left)
	}
}

// spendLate spends one of key's 10 units, with an answer that comes after the client's timeout.
func spendLate(t *testing.T, at, key string, retries int) {
	t.Helper()
	h := hold(t, at)
	client := redis.NewClient(&redis.Options{Addr: h.listener.Addr().String(), MaxRetries: retries, ReadTimeout: patience})
	warm(t, client)
	h.held.Lock()
	err := client.WithTimeout(500*time.Millisecond).Do(t.Context(), "CL.THROTTLE", key, 9, 10, 3600, 1).Err()
	h.held.Unlock()
	if err == nil {
		t.Error("an answer that was held back arrived")
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// waitLeft waits until key has left of its 10 units.
func waitLeft(t *testing.T, ask asker, key, left string) {
	t.Helper()
	want, got := "[0 10 "+left+" ", ""
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-again.C {
		if got = ask(t, []string{"CL.THROTTLE", key, "9", "10", "3600", "0"})[0]; strings.HasPrefix(got, want) {
			return
		}
	}
	t.Errorf("%s: got %s, want %s", key, got, want)
}
