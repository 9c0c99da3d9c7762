package http2

import (
	"bytes"
	"testing"
	"testing/synctest"

	wire "golang.org/x/net/http2"
)

// TestPartOfAFrame checks that replies do not wait for the rest of the frame behind them.
func TestPartOfAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, waits, false).hello()
		var out bytes.Buffer
		framer := wire.NewFramer(&out, nil)
		_ = framer.WritePing(false, [8]byte{1})
		_ = framer.WritePing(false, [8]byte{2})
		sent := out.Bytes()
		_, _ = client.conn.Write(sent[:len(sent)-1])
		client.want("a frame and a part of the next", "ping true")
		_, _ = client.conn.Write(sent[len(sent)-1:])
		client.want("the rest", "ping true")
	})
}
