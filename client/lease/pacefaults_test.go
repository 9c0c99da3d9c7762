package client_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/client/internal/leases"
	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/pace"
)

// paced makes a pacer with a client of its own.
func paced(t *testing.T, g *leases.Group, mode client.OnLoss) (*pace.Pacer, *logs.Text) {
	t.Helper()
	k, err := client.New(client.Config{Servers: []string{"a"}, Dial: g.Dial, OnLoss: mode})
	if err != nil {
		t.Fatal(err)
	}
	source, err := client.NewPace(k, "mail")
	if err != nil {
		t.Fatal(err)
	}
	log := new(logs.Text)
	p, err := pace.New(pace.Config{Provider: "mail", Source: source, Logger: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		_ = k.Close()
	})
	return p, log
}

// TestSlots has a resource whose unit changes at the root. With slots, the pacer grants nothing and says what to do. It goes on
// when the resource has a rate again.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, _ := fleet(t, 500, 1)
		t.Cleanup(g.Close)
		p, log := paced(t, g, client.Safe)
		rate := []state.Resource{{Match: "mail", Capacity: 500_000, Algorithm: state.MaxMin, Safe: -1}}
		slots := []state.Resource{{Match: "mail", Capacity: 9, Algorithm: state.MaxMin, Safe: -1, Slots: true}}
		for round := range 2 {
			if err := p.Acquire(t.Context(), patience); err != nil {
				t.Errorf("round %d, with a rate: %v", round, err)
			}
			a.Configure(slots)
			time.Sleep(6 * time.Second) //nolint:forbidigo // In a bubble of synctest: longer than a refresh.
			if err := p.Acquire(t.Context(), patience); !errors.Is(err, pace.ErrTimeout) {
				t.Errorf("round %d, with slots: %v", round, err)
			}
			a.Configure(rate)
			time.Sleep(6 * time.Second) //nolint:forbidigo // As above.
		}
		synctest.Wait()
		if !strings.Contains(log.String(), "set a capacity like 500/s") {
			t.Errorf("the log does not say what to do:\n%s", log)
		}
	})
}

// TestFaults: the log of the pacer says that no server has answered, that the lease has ended, and that the claim is refused.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, _ := fleet(t, 500, 1)
		t.Cleanup(g.Close)
		p, log := paced(t, g, client.Pessimistic)
		if err := p.Acquire(t.Context(), patience); err != nil {
			t.Error(err)
		}
		says := func(text string) {
			t.Helper()
			synctest.Wait()
			if !strings.Contains(log.String(), text) {
				t.Errorf("the log does not have %q:\n%s", text, log)
			}
		}
		a.Kill()
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble of synctest.
		says("no stream to server")
		time.Sleep(20 * time.Second) //nolint:forbidigo // As above.
		says("the lease of mail has ended")
		b := g.Start("a")
		b.Configure([]state.Resource{{Match: "other", Capacity: 1}})
		time.Sleep(20 * time.Second) //nolint:forbidigo // As above.
		says("no pattern matches")
	})
}
