package redis_test

import (
	"net"
	"testing"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestStartAndStop: a server answers, has a port of its own, and is gone after Stop.
func TestStartAndStop(t *testing.T) {
	one, other := redis.Start(t), redis.Start(t)
	if one.Addr == other.Addr {
		t.Errorf("two servers on %s", one.Addr)
	}
	one.Stop()
	one.Stop()
	if conn, err := net.Dial("tcp", one.Addr); err == nil {
		conn.Close()
		t.Errorf("%s still answers after Stop", one.Addr)
	}
	if conn, err := net.Dial("tcp", other.Addr); err != nil {
		t.Errorf("the other server is gone too: %v", err)
	} else {
		conn.Close()
	}
}
