package guard

import (
	"slices"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// TakenAll is what many requests took, in their order. It has 64 bytes for a request with one limit, without
// pointers, so the garbage collector does not read them. Like a Taken, it keeps limits prepared. The zero TakenAll
// is empty and ready. It is not safe for concurrent use.
//
// With Config.Meter, a request that a quota has counted is kept as a Taken, with the changes that a return makes: it allocates, has
// pointers, and takes more memory, which Size counts.
type TakenAll struct {
	from     *set // of receipts
	receipts []headgate.Receipt
	ends     []uint32      // by request, the end of its receipts; empty while each request has one receipt
	rest     map[int]Taken // requests with more than receipts of the store, or of another set
	n        int
}

// Len is the number of added requests.
func (t *TakenAll) Len() int { return t.n }

// Reset removes all requests, and keeps the memory for others.
func (t *TakenAll) Reset() {
	t.from, t.receipts, t.ends, t.rest, t.n = nil, t.receipts[:0], t.ends[:0], nil, 0
}

// Cap is the number of requests with one limit for which memory is kept.
func (t *TakenAll) Cap() int { return cap(t.receipts) }

// The memory of what TakenAll keeps, in bytes. TestSizeOfTakenAll measures it.
const (
	receiptBytes = int64(unsafe.Sizeof(headgate.Receipt{}))
	endBytes     = int64(unsafe.Sizeof(uint32(0)))
	// restBytes is a request in the map: a map has room for more entries than it has.
	restBytes = 3 * int64(unsafe.Sizeof(Taken{}))
	mapBytes  = 1 << 10
	// waiterBytes is a booked departure, and memberBytes its place in the queue of one limit.
	// usageBytes is a change for the meter, with the customer's name.
	usageBytes  = int64(unsafe.Sizeof(headgate.Usage{})) + rule.MaxClientName
	waiterBytes = int64(unsafe.Sizeof(waiter{})) + 256 // And its channel.
	memberBytes = int64(unsafe.Sizeof(member{})) + 2*int64(unsafe.Sizeof((*member)(nil)))
)

// Size is the most memory, in bytes, that the requests keep, and that a Reset keeps for others. The limits that
// stay prepared are not a part of it.
func (t *TakenAll) Size() int64 {
	size := int64(cap(t.receipts))*receiptBytes + int64(cap(t.ends))*endBytes
	if t.rest != nil {
		size += mapBytes
	}
	for _, r := range t.rest {
		size += restBytes + r.size()
	}
	return size
}

// AddNone adds a request that took nothing.
func (t *TakenAll) AddNone() {
	t.receipts = append(t.receipts, headgate.Receipt{}) // The place of the request.
	t.end(1)
}

// Add adds the request of an Answer, and reports whether it took anything. Call it after Decide or DecideAll, and
// before the next decision of the Answer.
func (t *TakenAll) Add(a *Answer) bool {
	if a.Verdict == headgate.Deny {
		t.AddNone() // A refusal has given back what it took.
		return false
	}
	if a.waiter != nil || len(a.shadows) > 0 || a.sharer != nil || a.local != nil || a.countsUsage() || t.from != nil && t.from != a.from {
		return t.addRest(a.Taken())
	}
	added := 0
	for i := range a.Results {
		if receipt := &a.Results[i].Decision.Receipt; !receipt.Empty() {
			t.receipts = append(t.receipts, *receipt)
			added++
		}
	}
	if added == 0 {
		t.AddNone()
		return false
	}
	t.from = a.from
	t.end(added)
	return true
}

func (t *TakenAll) addRest(taken Taken) bool {
	if !taken.Empty() {
		if t.rest == nil {
			t.rest = map[int]Taken{}
		}
		t.rest[t.n] = taken
	}
	t.AddNone()
	return !taken.Empty()
}

// end ends the receipts of a request.
func (t *TakenAll) end(added int) {
	if added > 1 && len(t.ends) == 0 {
		for i := range t.n {
			t.ends = append(t.ends, uint32(i+1))
		}
	}
	if added > 1 || len(t.ends) > 0 {
		t.ends = append(t.ends, uint32(len(t.receipts)))
	}
	t.n++
}

// Take removes what request i took, and gives it. It is empty for a number of no request, and after an earlier Take.
func (t *TakenAll) Take(i int) Taken {
	if i < 0 || i >= t.n {
		return Taken{}
	}
	if rest, found := t.rest[i]; found {
		delete(t.rest, i)
		return rest
	}
	receipts := t.receiptsOf(i)
	taken := Taken{from: t.from, one: receipts[0], more: slices.Clone(receipts[1:])}
	clear(receipts)
	if taken.Empty() {
		return Taken{}
	}
	return taken
}

// receiptsOf gives the receipts of a request: one at least, which may be empty.
func (t *TakenAll) receiptsOf(i int) []headgate.Receipt {
	if len(t.ends) == 0 {
		return t.receipts[i : i+1]
	}
	from := uint32(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return t.receipts[from:t.ends[i]]
}
