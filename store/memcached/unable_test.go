package memcached_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/store/memcached"
)

// TestRefusedReadIsNoMissingKey: a server, or a proxy before it, refuses to read a key. The look at the key fails, and
// does not show a limit without used units. The connection is closed, because its address may lead elsewhere.
func TestRefusedReadIsNoMissingKey(t *testing.T) {
	forger := network.NewForger(t, testserver.Start(t).Addr)
	link := network.New(t, forger.Addr)
	store := newStore(t, memcached.Config{Servers: []string{link.Addr}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 10})
	accepted := link.Accepted()
	forger.Replace("mg ", func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader([]byte("SERVER_ERROR backend failure\r\n")))
		return err
	})
	var d [1]headgate.Decision
	err := store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Kind: headgate.Peek}}, d[:])
	if err == nil || !strings.Contains(err.Error(), "proxy") || d[0].Verdict != headgate.Deny {
		t.Fatalf("got %+v and error %v, want an error that names the proxy", d[0], err)
	}
	for end := time.Now().Add(20 * time.Second); ; {
		// The connection ends after the answer, so another call may find it closed.
		err := store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Kind: headgate.Peek}}, d[:])
		if err == nil && link.Accepted() > accepted {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v, %d connections, want more than %d", err, link.Accepted(), accepted)
		}
	}
	if d[0].Remaining != 0 {
		t.Errorf("%d units remain, want 0", d[0].Remaining)
	}
}
