package throttle

// table is a map with a bound. A new entry takes the place of the entry that was used longest
// ago. Pointers to values stay valid; an entry that is replaced gets a new number.
type table[K comparable, V any] struct {
	most    int
	numbers uint32 // of all entries so far
	entries map[K]*entry[K, V]
	newest  *entry[K, V]
	last    *entry[K, V]
}

type entry[K comparable, V any] struct {
	key          K
	newer, older *entry[K, V]
	value        V
}

func newTable[K comparable, V any](most int) table[K, V] {
	return table[K, V]{most: most, entries: map[K]*entry[K, V]{}}
}

// get returns the value of a key, and marks it as used.
func (t *table[K, V]) get(key K) (*V, bool) {
	e, ok := t.entries[key]
	if !ok {
		return nil, false
	}
	if e != t.newest {
		t.unlink(e)
		t.link(e)
	}
	return &e.value, true
}

// add adds a key that is not present, in place of the oldest one when the table is full. The
// value may still be that of the oldest key. add returns the number of the entry.
func (t *table[K, V]) add(key K) (*V, uint32) {
	var e *entry[K, V]
	if t.full() {
		e = t.last
		t.unlink(e)
		delete(t.entries, e.key)
	} else {
		e = new(entry[K, V])
	}
	e.key = key
	t.entries[key] = e
	t.link(e)
	t.numbers++
	return &e.value, t.numbers
}

func (t *table[K, V]) full() bool { return len(t.entries) >= t.most }

// oldest returns the value that add would replace, or nil in an empty table.
func (t *table[K, V]) oldest() *V {
	if t.last == nil {
		return nil
	}
	return &t.last.value
}

func (t *table[K, V]) link(e *entry[K, V]) {
	e.newer, e.older = nil, t.newest
	if t.newest != nil {
		t.newest.newer = e
	} else {
		t.last = e
	}
	t.newest = e
}

func (t *table[K, V]) unlink(e *entry[K, V]) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		t.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		t.last = e.newer
	}
}
