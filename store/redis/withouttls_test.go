package redis

import (
	"context"
	"net"
	"strings"
	"testing"

	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

// TestAnswersWithoutTLS: a server has no TLS only if it answers a plain PING as Redis does.
func TestAnswersWithoutTLS(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	secure, _ := testredis.StartTLS(t)
	for _, row := range []struct {
		name, addr string
		want       bool
	}{
		{"plain", testredis.Start(t).Addr, true},
		{"plain with a password", testredis.StartACL(t, "default", "secret", "~*", "+@all").Addr, true},
		{"TLS", secure.Addr, false},
		{"silent", silent.Addr().String(), false},
		{"refused", "127.0.0.1:1", false},
	} {
		got := answersWithoutTLS(t.Context(), row.addr, new(net.Dialer), dialPlainOrTLS)
		for range 20 { // A busy machine may miss one answer.
			if got == row.want || !row.want {
				break
			}
			got = answersWithoutTLS(t.Context(), row.addr, new(net.Dialer), dialPlainOrTLS)
		}
		if got != row.want {
			t.Errorf("answersWithoutTLS for server %s: got %t, want %t", row.name, got, row.want)
		}
	}
	if text := couldNot("connect", errWithoutTLS).Error(); strings.Contains(text, "SLOWLOG") {
		t.Error(text)
	}
	if text := couldNot("connect", context.DeadlineExceeded).Error(); strings.Contains(text, "rediss") {
		t.Error(text)
	}
}
