//go:build soak

package front

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/internal/lease/state"
)

// TestSoakLeafWithAllResources: a leaf has claims on all resources that a server may have, with long names.
func TestSoakLeafWithAllResources(t *testing.T) {
	top := serve(t, Options{State: root()})
	bottom, u := leaf(t, nil, top.at)
	until(t, "the stream", func() bool { return u.Parent() != "" })
	c := bottom.open(t)
	for seq := range uint64(state.MaxResources / state.MaxClaims) {
		names := make([]string, state.MaxClaims)
		for i := range names {
			names[i] = fmt.Sprintf("db/%0240d/%d/%d", 0, seq, i)
		}
		c.send(claims("web", seq+1, 10, names...))
	}
	served := map[string]bool{}
	for len(served) < state.MaxResources {
		for _, l := range c.receive().GetLeases() {
			if l.GetAmount() == 10 {
				served[l.GetResource()] = true
			}
		}
	}
}
