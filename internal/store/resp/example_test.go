package resp_test

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/internal/store/resp"
)

// A reply that no command awaits is refused before the client library reads it.
func ExampleChecker() {
	c := resp.New(4 << 10)
	err := c.Received([]byte("+PONG\r\n"))
	fmt.Println(errors.Is(err, resp.ErrReply))
	// Output: true
}
