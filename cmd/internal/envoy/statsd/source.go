package statsd

// Source has counters. Counters calls yield with the name and the value of each, in any order. It
// must be safe for concurrent use.
type Source interface {
	Counters(yield func(name string, value uint64))
}

// Sources are several sources in order.
type Sources []Source

// Counters gives the counters of all sources.
func (s Sources) Counters(yield func(name string, value uint64)) {
	for _, one := range s {
		one.Counters(yield)
	}
}
