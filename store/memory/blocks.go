package memory

import (
	"math/bits"
	"sync"
)

// blocks lends runs of words out of one fixed array, for the states that do not
// fit into a place. It is a buddy allocator: block sizes are powers of two, a
// freed block joins its free neighbour, and so no pattern of logs can leave the
// array in pieces too small for the next one.
//
// lend and free lock; the words of a lent block belong to the holder of the
// shard's lock that it was lent to.
type blocks struct {
	mu    sync.Mutex
	words []int64
	// orders says for each smallest block whether a free block begins there, and
	// of which order: 0 is none, n is order n-1.
	orders []uint8
	// heads are the lists of free blocks by order, as word offset + 1.
	heads [48]uint64
	lent  int64
}

// minBlock is the smallest block, a cache line.
const minBlock = 8

// A free block keeps its neighbours in the list in its first words.
const (
	wordNext = 0
	wordPrev = 1
)

// blockWordsOf gives the number of words of an array of about as many bytes.
func blockWordsOf(bytes int64) int { return int(bytes/8) &^ (minBlock - 1) }

// blocksBytes gives the memory of that array and of what belongs to it.
func blocksBytes(words int) int64 {
	return regionBytes(words, 8) + regionBytes(words/minBlock, 1)
}

func newBlocks(r *region, words int) *blocks {
	n := uint64(words)
	b := &blocks{words: cut[int64](r, words), orders: cut[uint8](r, words/minBlock)}
	// The array is the binary digits of its length, the greatest block first:
	// every block is aligned to its size.
	for at := uint64(0); at < n; {
		order := bits.Len64((n-at)/minBlock) - 1
		b.push(at, order)
		at += minBlock << order
	}
	return b
}

// orderOf gives the order of the least block that holds n words.
func orderOf(n int) int {
	return bits.Len(uint((n+minBlock-1)/minBlock - 1))
}

// largest gives the words of the greatest block that there can be.
func (b *blocks) largest() int {
	if len(b.words) == 0 {
		return 0
	}
	return minBlock << (bits.Len(uint(len(b.words)/minBlock)) - 1)
}

// lend gives a zeroed block of at least n words, as its offset + 1, or 0 when
// there is none.
func (b *blocks) lend(n int) uint64 {
	want := orderOf(n)
	at, ok := b.carve(want)
	if !ok {
		return 0
	}
	clear(b.words[at : at+minBlock<<want])
	return at + 1
}

// carve takes a block of an order out of the free ones.
func (b *blocks) carve(want int) (at uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := want
	for order < len(b.heads) && b.heads[order] == 0 {
		order++
	}
	if order == len(b.heads) {
		return 0, false
	}
	at = b.heads[order] - 1
	b.remove(at, order)
	for order > want {
		order--
		b.push(at+minBlock<<order, order)
	}
	b.lent += minBlock << want
	return at, true
}

// free takes back the block of n words, as lend was asked for it.
func (b *blocks) free(ref uint64, n int) {
	at, order := ref-1, orderOf(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent -= minBlock << order
	for {
		buddy := at ^ minBlock<<order
		if buddy/minBlock >= uint64(len(b.orders)) || b.orders[buddy/minBlock] != uint8(order)+1 {
			break
		}
		b.remove(buddy, order)
		at = min(at, buddy)
		order++
	}
	b.push(at, order)
}

// block gives the n words of a lent block.
func (b *blocks) block(ref uint64, n int) []int64 {
	return b.words[ref-1 : ref-1+uint64(minBlock<<orderOf(n))]
}

// bytesLent says how much is lent out.
func (b *blocks) bytesLent() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lent * 8
}

// push puts a free block at the front of its list; mu is held.
func (b *blocks) push(at uint64, order int) {
	head := b.heads[order]
	b.words[at+wordNext], b.words[at+wordPrev] = int64(head), 0
	if head != 0 {
		b.words[head-1+wordPrev] = int64(at + 1)
	}
	b.heads[order] = at + 1
	b.orders[at/minBlock] = uint8(order) + 1
}

// remove takes a free block out of its list; mu is held.
func (b *blocks) remove(at uint64, order int) {
	next, prev := b.words[at+wordNext], b.words[at+wordPrev]
	if next != 0 {
		b.words[next-1+wordPrev] = prev
	}
	if prev != 0 {
		b.words[prev-1+wordNext] = next
	} else {
		b.heads[order] = uint64(next)
	}
	b.orders[at/minBlock] = 0
}
