package listen

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, in the processes that tests start, one of their parts.
func TestMain(m *testing.M) {
	switch part := os.Getenv("HEADGATE_TEST_PART"); part {
	case "":
		goleak.VerifyTestMain(m)
	case "inherit":
		os.Exit(inherit())
	case "proxy":
		os.Exit(serveProxy())
	default:
		fmt.Fprintln(os.Stderr, "no such part: "+part)
		os.Exit(2)
	}
}

// inherit serves one connection of the socket it was started with, and says on
// what it listened.
func inherit() int {
	l, err := Open(context.Background(), Config{Address: os.Getenv("HEADGATE_TEST_ADDRESS")})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer l.Close()
	conn, err := l.Accept()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer conn.Close()
	_, tcp := conn.(*counted).Conn.(*net.TCPConn)
	fmt.Fprintf(conn, "served %v", tcp)
	return 0
}
