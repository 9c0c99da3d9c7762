package proxy

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPlanesTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newPlane(t, false, planeSetup{})
		defer a.stop()
		tr := a.converse(said("x", "GET /x HTTP/1.1\r\nHost: a\r\nX-Api-Key: k\r\n\r\nHEAD /denied/x HTTP/1.1\r\nHost: a\r\n\r\nPOST /delayed/x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabc"))
		t.Log("\n" + strings.Join(tr.text(), "\n"))
		t.Log(time.Now())
	})
	synctest.Test(t, func(t *testing.T) {
		a, b := newPlane(t, false, planeSetup{}), newPlane(t, true, planeSetup{})
		defer a.stop()
		defer b.stop()
		c := said("x", "GET /x HTTP/1.1\r\nHost: a\r\nX-Api-Key: k\r\n\r\nPOST /y HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd")
		const n = 10000
		for range n {
			if d := difference(a.converse(c), b.converse(c)); d != "" {
				t.Fatal(d)
			}
		}
	})
}
