package wire_test

import (
	"fmt"

	"github.com/headgate/headgate/internal/proto/wire"
)

// A message has a text in field 1 and a number in field 2.
func Example() {
	message := wire.AppendNumber(wire.AppendText(nil, 1, "shop"), 2, 300)
	for len(message) > 0 {
		f, n := wire.ReadField(message)
		if n < 0 {
			fmt.Println("the message is broken")
			return
		}
		switch f.ID {
		case wire.Bytes(1):
			text, err := wire.Text(f.Bytes)
			fmt.Println(text, err)
		case wire.Varint(2):
			fmt.Println(f.Number())
		}
		message = message[n:]
	}
	// Output:
	// shop <nil>
	// 300
}
