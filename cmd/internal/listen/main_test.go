package listen

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/testkit/leak"
)

// TestMain runs the tests. In processes that tests start, it runs one of the roles instead.
func TestMain(m *testing.M) {
	switch role := os.Getenv("HEADGATE_TEST_ROLE"); role {
	case "":
		leak.Main(m)
	case "inherit":
		os.Exit(inherit())
	case "proxy":
		os.Exit(serveProxy())
	default:
		fmt.Fprintln(os.Stderr, "unknown role: "+role)
		os.Exit(2)
	}
}

// inherit serves one connection on each socket that its addresses name. It prints the
// listeners' addresses and the environment variables that child processes would inherit.
func inherit() int {
	var inherited Inherited
	var all []*Listener
	for address := range strings.FieldsSeq(os.Getenv("HEADGATE_TEST_ADDRESS")) {
		l, err := Open(context.Background(), Config{Address: address, Inherited: &inherited})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		all = append(all, l)
	}
	var serving sync.WaitGroup
	for _, l := range all {
		serving.Go(func() {
			defer l.Close()
			conn, err := l.Accept()
			if err != nil {
				fmt.Println(err)
				return
			}
			defer conn.Close()
			_, tcp := conn.(*counted).Conn.(*net.TCPConn)
			fmt.Fprintf(conn, "served %v%s%s%s", tcp, os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES"))
		})
	}
	serving.Wait()
	return 0
}
