package rules

import (
	"cmp"
	"fmt"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/store/breaker"
)

// Attention says which servers of the store are not used.
func (r *Rules) Attention(add func(admin.Attention)) {
	shared := r.store.State()
	for i := range shared.Nodes {
		n := &shared.Nodes[i]
		if n.State == breaker.Closed {
			continue
		}
		add(admin.Attention{
			Level: admin.LevelFault, About: "store", Name: n.Name,
			Text: fmt.Sprintf("The store server %s is not used after failed calls (%d since the start): the fallback of each rule "+
				"decides. Check the server and the network. The last error: %s", n.Name, n.Failures, cmp.Or(n.LastFailure.Text, "none")),
		})
	}
}
