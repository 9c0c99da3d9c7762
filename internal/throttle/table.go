package throttle

// table is a map with a bound. A new entry takes the place of the entry that was used longest
// ago. Each entry has a new number and its own memory: requests may still point to the value of
// an entry that gave way, and must not change the value of another key.
type table[K comparable, V any] struct {
	most    int
	numbers uint32 // of all entries so far
	entries map[K]*entry[K, V]
	newest  *entry[K, V]
	last    *entry[K, V]
}

type entry[K comparable, V any] struct {
	key          K
	held         bool // has no place in the order of use
	gone         bool // another entry has taken its place
	newer, older *entry[K, V]
	value        V
}

func newTable[K comparable, V any](most int) table[K, V] {
	return table[K, V]{most: most, entries: map[K]*entry[K, V]{}}
}

// get returns the value of a key, and marks it as used.
func (t *table[K, V]) get(key K) (*V, bool) {
	if e := t.find(key); e != nil {
		return &e.value, true
	}
	return nil, false
}

// find returns the entry of a key, or nil, and marks it as used.
func (t *table[K, V]) find(key K) *entry[K, V] {
	e := t.entries[key]
	if e != nil {
		t.use(e)
	}
	return e
}

// use marks an entry as used. It reports false for nil, and for an entry that gave way.
func (t *table[K, V]) use(e *entry[K, V]) bool {
	if e == nil || e.gone {
		return false
	}
	if e != t.newest && !e.held {
		t.unlink(e)
		t.link(e)
	}
	return true
}

// hold keeps an entry from giving way until free, which marks it as used.
func (t *table[K, V]) hold(e *entry[K, V]) {
	t.unlink(e)
	e.held = true
}

func (t *table[K, V]) free(e *entry[K, V]) {
	t.link(e)
	e.held = false
}

// add adds a key that is not present, in place of the oldest one when the table is full. The
// caller makes sure that an entry may give way. add returns the entry, with the zero value, and
// its number.
func (t *table[K, V]) add(key K) (*entry[K, V], uint32) {
	if t.full() {
		delete(t.entries, t.last.key)
		t.last.gone = true
		t.unlink(t.last)
	}
	e := &entry[K, V]{key: key}
	t.entries[key] = e
	t.link(e)
	t.numbers++
	return e, t.numbers
}

func (t *table[K, V]) full() bool { return len(t.entries) >= t.most }

// oldest returns the value that add would replace, or nil when no entry may give way.
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
