package documents

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// oneSlot is the query of a request in flight.
func oneSlot() headgate.SlotOp {
	return headgate.SlotOp{Key: "a", Window: 253, Limit: 1, TTL: 10 * time.Second}
}

// inFlight takes a slot, and frees it.
func inFlight(t *testing.T, store *redis.Store) error {
	t.Helper()
	short := oneSlot()
	short.TTL = time.Second
	look, end := time.NewTicker(20*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for {
		d, err := store.TakeSlot(t.Context(), short)
		if err != nil {
			return err
		}
		if d.Verdict == headgate.Allow {
			store.FreeSlot(d.Receipt)
			break
		}
		<-look.C
	}
	for { // Until the slot is free.
		d, err := store.TakeSlot(t.Context(), short)
		if err != nil || d.Verdict == headgate.Allow {
			store.FreeSlot(d.Receipt)
			return err
		}
		select {
		case <-look.C:
		case <-end:
			return errors.New("the slot is not free after 20 s")
		}
	}
}

// slotCommands returns the commands for a request in flight, and for its end. The server knows the
// script already.
func slotCommands(t *testing.T, m *monitor, server *testserver.Server, store *redis.Store) (takes, frees []string) {
	t.Helper()
	taken := func() bool {
		reply, err := server.Do("KEYS", "*:253s")
		all, ok := reply.([]any)
		if err != nil || !ok {
			t.Fatal(reply, err)
		}
		return len(all) > 0
	}
	free := func(r headgate.Receipt) {
		store.FreeSlot(r)
		for taken() {
			time.Sleep(time.Millisecond) //nolint:forbidigo // It polls a server; the test has a deadline.
		}
	}
	take := func() headgate.Receipt {
		d, err := store.TakeSlot(t.Context(), oneSlot())
		if err != nil || d.Verdict != headgate.Allow {
			t.Fatal(d, err)
		}
		return d.Receipt
	}
	free(take())
	var r headgate.Receipt
	takes = m.during(t, func() { r = take() })
	return takes, m.during(t, func() { free(r) })
}
