package prefetch

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// corrects reports whether the group is a Refund or a Charge. The source decides all of them: units come back
// to its count, not to a stash, and a debt leaves the units of stashes to their requests.
func (g *group) corrects() bool { return limit.Corrects(g.ops[0].Kind) }

// voidReceipts voids the receipts of the stashes of an op's key and window, before the source
// refunds units. Otherwise a caller that refunds units and then returns their receipt would give
// them back twice. Unspent units of the stashes stay. Receipts of the stashes of other
// processes stay valid.
func (s *Store) voidReceipts(op *headgate.Op) {
	tag := s.hash(op.Key)
	t := s.table.setOf(tag)
	t.lock()
	defer t.unlock()
	for i := range t.tags {
		if pl := &t.places[i]; t.tags[i] == tag && pl.shape.has(op.Window) {
			for j := range pl.stashes {
				if st := &pl.stashes[j]; st.units > 0 {
					st.nonce = s.firstNonce()
				}
			}
		}
	}
}

// firstNonce gives the nonce of the first receipt of a stash.
func (s *Store) firstNonce() uint64 { return s.grants.Add(1)<<seqBits | 1 }
