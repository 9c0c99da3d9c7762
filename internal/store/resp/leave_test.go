package resp_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/store/resp"
)

// TestLeave: after a reply that the judge picks, the reader gets the reply, the connection is closed, and later calls
// get a LeftError with the reply.
func TestLeave(t *testing.T) {
	near, far := net.Pipe()
	c := resp.Wrap(near, most)
	var judged []string
	c.LeaveAfter(func(reply []byte) bool {
		judged = append(judged, string(reply))
		return strings.HasPrefix(string(reply), "READONLY")
	})
	// Before Redis 7, the error of a script has the code of its cause in its middle.
	const old = "-ERR Error running script (call to f_0123): @user_script:3: @user_script: 3: -READONLY You can't write.\r\n"
	replies := []string{"-OOM command not allowed\r\n", "+READONLY\r\n", "$9\r\nREADONLY \r\n", old}
	go func() {
		for _, reply := range replies {
			if _, err := io.ReadFull(far, make([]byte, len(evalsha))); err != nil {
				return
			}
			if _, err := io.WriteString(far, reply); err != nil {
				return
			}
		}
	}()
	for range replies {
		if _, err := c.Write([]byte(evalsha)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 256)); n == 0 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if got := strings.Join(judged, "|"); got != "OOM command not allowed|READONLY You can't write" {
		t.Errorf("judged %q", got)
	}
	var left *resp.LeftError
	if _, err := c.Write([]byte(evalsha)); !errors.As(err, &left) || !strings.HasPrefix(left.Reply, "READONLY") {
		t.Errorf("a write after the end: %v", err)
	}
	if _, err := c.Read(make([]byte, 256)); !errors.As(err, &left) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a read after the end: %v", err)
	}
	if _, err := far.Write([]byte("x")); err == nil {
		t.Error("the connection is open")
	}
}

// TestJudgeAllocatesNothing: replies that are no errors are not judged.
func TestJudgeAllocatesNothing(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = near.Close() }()
	c := resp.Wrap(near, most)
	c.LeaveAfter(func([]byte) bool { return true })
	go func() {
		command := make([]byte, len(evalsha))
		for {
			if _, err := io.ReadFull(far, command); err != nil {
				return
			}
			if _, err := far.Write([]byte("$2\r\nok\r\n")); err != nil {
				return
			}
		}
	}()
	sent, got := []byte(evalsha), make([]byte, 256)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Write(sent); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, got[:8]); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // The allocation is of net.Pipe.
		t.Errorf("%v allocations", n)
	}
}
