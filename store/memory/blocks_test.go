package memory

import (
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate"
)

// blocksOf makes blocks in their own memory.
func blocksOf(bytes int64) *blocks {
	words := blockWordsOf(bytes)
	return newBlocks(&region{bytes: make([]byte, blocksBytes(words))}, words)
}

// TestBlocksAgainstABitmap lends and frees at random: no two blocks overlap, and every block
// is zeroed. After the last free, the whole array can be lent again.
func TestBlocksAgainstABitmap(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 9))
		b := blocksOf(int64(1+r.IntN(9)) * 1111)
		owner := make([]int, len(b.words))
		type lent struct {
			ref uint64
			n   int
		}
		var out []lent
		for step := 1; step < 400; step++ {
			if r.IntN(2) == 0 && len(out) > 0 {
				i := r.IntN(len(out))
				for w := range b.block(out[i].ref, out[i].n) {
					owner[int(out[i].ref)-1+w] = 0
				}
				b.free(out[i].ref, out[i].n)
				out = append(out[:i], out[i+1:]...)
				continue
			}
			n := 1 + r.IntN(100)
			ref := b.lend(n)
			if ref == 0 {
				continue
			}
			out = append(out, lent{ref, n})
			for w, word := range b.block(ref, n) {
				if owner[int(ref)-1+w] != 0 || word != 0 {
					t.Fatalf("seed %d: word %d is lent twice or not zeroed", seed, int(ref)-1+w)
				}
				owner[int(ref)-1+w] = step
				b.words[int(ref)-1+w] = int64(step)
			}
		}
		for _, l := range out {
			b.free(l.ref, l.n)
		}
		if b.bytesLent() != 0 {
			t.Errorf("seed %d: %d bytes are lent after all was freed", seed, b.bytesLent())
		}
		if largest := b.largest(); largest > 0 && b.lend(largest) == 0 {
			t.Errorf("seed %d: the freed pieces did not join", seed)
		}
	}
}

// TestLedgerForgetsTheOldest: the ledger refuses a receipt that is older than the last
// forgotten line of its shard. Other shards are not affected.
func TestLedgerForgetsTheOldest(t *testing.T) {
	var l ledger
	first, other := headgate.Receipt{Nonce: 1}, headgate.Receipt{Nonce: 1<<nonceBits + 1}
	if !l.enter(&first) || l.enter(&first) {
		t.Error("a receipt is returned once")
	}
	for i := range uint64(ledgerSize) {
		l.enter(&headgate.Receipt{Nonce: 2 + i})
	}
	if l.enter(&first) {
		t.Error("a forgotten receipt is returned again")
	}
	if !l.enter(&other) {
		t.Error("a receipt of another shard is refused")
	}
	if len(l.returned) > ledgerSize {
		t.Errorf("%d lines are remembered, more than %d", len(l.returned), ledgerSize)
	}
}
