package xds

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// refuseBad refuses sets whose first value begins with bad.
func refuseBad(all []Resource) error {
	if len(all) > 0 && strings.HasPrefix(all[0].Descriptors[0].Value, "bad") {
		return fmt.Errorf("%s: descriptor has empty key", all[0].Name)
	}
	return nil
}

// TestRefusal follows a real server with a refused configuration for 30 s, and then corrects it.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		c := start(t, n.listen())
		c.publish(t, "v1", domain("first", "good"))
		i := follow(t, n.source(t, Config{}), refuseBad)
		i.awaitValue(t, "good")
		synctest.Wait()

		before, _ := c.received()
		c.publish(t, "v2", domain("first", "bad"))
		began := time.Now()
		synctest.Wait()
		<-time.After(30 * time.Second)
		synctest.Wait()
		all, at := c.received()
		var offsets []time.Duration
		for k := len(before); k < len(all); k++ {
			offsets = append(offsets, at[k].Sub(began).Round(time.Millisecond))
			r := all[k]
			if r.GetVersionInfo() != "v1" || r.GetErrorDetail().GetMessage() != "first: descriptor has empty key" ||
				r.GetResponseNonce() != fmt.Sprint(k) || r.GetNode().GetId() != node {
				t.Errorf("refusal %d is %v, want version v1, nonce %d, the node and the fault's text", k, r, k)
			}
		}
		if got, want := fmt.Sprint(offsets), "[0s 1s 3s 7s 12s 17s 22s 27s]"; got != want {
			t.Errorf("refused after %s, want %s", got, want)
		}
		if len(all) > 10 {
			t.Errorf("the server got %d messages, want at most 10", len(all))
		}
		_, faults, _ := i.known()
		if refused := (*RefusedError)(nil); len(faults) != 1 || !errors.As(faults[0], &refused) || refused.Version != "v2" {
			t.Errorf("the faults are %v, want one refusal of v2", faults)
		}
		if i.value() != "good" {
			t.Errorf("%q is in force, want the last good configuration", i.value())
		}

		corrected := time.Now()
		c.publish(t, "v3", domain("first", "corrected"))
		i.awaitValue(t, "corrected")
		if _, _, since := i.known(); since.Sub(corrected) > lastRefusal {
			t.Errorf("the corrected configuration took %v, want at most %v", since.Sub(corrected), lastRefusal)
		}
		synctest.Wait()
		all, _ = c.received()
		last := all[len(all)-1]
		if last.GetVersionInfo() != "v3" || last.GetErrorDetail() != nil {
			t.Errorf("the last message is %v, want the acknowledgement of v3", last)
		}
		i.stop(t)
		c.stop()
	})
}
