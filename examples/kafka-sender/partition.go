package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate/pace"
)

// event is a record that is to be sent.
type event struct {
	record *kgo.Record
	of     *partition
	state  eventState
	tries  int         // that have failed
	ticket pace.Ticket // while it waits for its permit
	timer  *time.Timer // while it rests
}

type eventState uint8

const (
	queued  eventState = iota
	waiting            // for its permit
	calling
	resting // until it is tried again
	done
)

type place struct {
	topic string
	id    int32
}

// partition is what has been read of a partition of ours and is not yet done with.
type partition struct {
	place

	state  ownership
	events fifo[*event]  // from the first that is not done
	calls  int           // under way
	idle   chan struct{} // Closed when no call is under way any more; nil unless somebody waits for it.
	paused bool
}

type ownership uint8

const (
	owned   ownership = iota
	leaving           // Nothing is begun any more; what succeeds is still committed.
	gone              // Whatever comes of it is another's business.
)

// finished moves past the records that are done and have none before them that is
// not, and gives the last of them: all up to it may be committed.
func (p *partition) finished() *kgo.Record {
	var last *kgo.Record
	for {
		e, ok := p.events.first()
		if !ok || e.state != done {
			return last
		}
		last = e.record
		p.events.pop()
	}
}

// takeDown puts what was read behind what waits, and pauses partitions of which there is enough.
func (s *Sender) takeDown(fetches kgo.Fetches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		p := s.partitions[place{f.Topic, f.Partition}]
		if p == nil || p.state != owned {
			return
		}
		for _, r := range f.Records {
			e := &event{record: r, of: p}
			p.events.push(e)
			s.backlog.push(e)
			s.counts.Read++
		}
		if !p.paused && p.events.len() >= s.most() {
			s.client.PauseFetchPartitions(p.alone())
			p.paused = true
			s.counts.Pauses++
		}
	})
	s.signal()
}

// most is a partition's part of the backlog. It is called with the lock.
func (s *Sender) most() int { return max(s.c.Backlog/max(len(s.partitions), 1), 1) }

// room is how many records are read at once.
func (s *Sender) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(s.most(), readAtOnce)
}

// resume reads a partition again when half of its part of the backlog is free. Between
// the two marks lies enough for fetching to be worth while. It is called with the lock.
func (s *Sender) resume(p *partition) {
	if !p.paused || p.events.len() > s.most()/2 {
		return
	}
	s.client.ResumeFetchPartitions(p.alone())
	p.paused = false
	s.counts.Resumes++
}

func (p *partition) alone() map[string][]int32 { return map[string][]int32{p.topic: {p.id}} }
