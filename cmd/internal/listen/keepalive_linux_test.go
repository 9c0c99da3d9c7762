package listen

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKeepAlive checks the options of accepted connections, of a listening socket that has them
// and of one that does not.
func TestKeepAlive(t *testing.T) {
	for _, inherited := range []bool{true, false} {
		l := listener(t, Config{Address: "127.0.0.1:0"})
		if inherited && !l.keepsAlive {
			t.Log("the kernel refuses the options for listening sockets")
		}
		if !inherited {
			socket, err := l.inner.(*tcpListener).Listener.(syscall.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			_ = socket.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0) })
			if err != nil {
				t.Fatal(err)
			}
			l.keepsAlive = false
		}
		conns := accepted(l)
		dial(t, l.Addr())
		c := <-conns
		t.Cleanup(func() { c.Close() })
		socket, err := c.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		for name, option := range map[string][3]int{
			"SO_KEEPALIVE":  {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			"TCP_KEEPIDLE":  {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 30},
			"TCP_KEEPINTVL": {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 10},
			"TCP_KEEPCNT":   {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
		} {
			got := 0
			var failed error
			err := socket.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), option[0], option[1]) })
			if err := errors.Join(err, failed); err != nil || got != option[2] {
				t.Errorf("inherited %v: %s is %d, %v, want %d", inherited, name, got, err, option[2])
			}
		}
	}
}
