package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate/pace"
)

// event is a record to send.
type event struct {
	record *kgo.Record
	of     *partition
	state  eventState
	tries  int         // number of failed tries
	ticket pace.Ticket // set while the event waits for its permit
	timer  *time.Timer // set while the next try is delayed
}

type eventState uint8

const (
	queued  eventState = iota
	waiting            // for its permit
	calling
	delayed // until its next try
	done
)

type place struct {
	topic string
	id    int32
}

// partition has the records of an assigned partition that were read and are not done.
type partition struct {
	place

	state  partitionState
	events fifo[*event]  // from the first event that is not done
	calls  int           // in flight
	idle   chan struct{} // Closed when no call is in flight; nil if no goroutine waits for it.
	paused bool
}

type partitionState uint8

const (
	active  partitionState = iota
	leaving                // No new call starts. Successful calls are still committed.
	gone                   // Results of calls are ignored.
)

// finished removes the done records at the start of the queue. finished returns the last of these
// records: the sender may commit all records up to it.
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

// enqueue adds the records to the backlog, and pauses partitions with a full part.
func (s *Sender) enqueue(fetches kgo.Fetches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		p := s.partitions[place{f.Topic, f.Partition}]
		if p == nil || p.state != active {
			return
		}
		for _, r := range f.Records {
			e := &event{record: r, of: p}
			p.events.push(e)
			s.backlog.push(e)
			s.counts.Read++
		}
		if !p.paused && p.events.len() >= s.maxEvents() {
			s.client.PauseFetchPartitions(p.topics())
			p.paused = true
			s.counts.Pauses++
		}
	})
	s.signal()
}

// maxEvents returns a partition's part of the backlog. The caller holds mu.
func (s *Sender) maxEvents() int { return max(s.c.Backlog/max(len(s.partitions), 1), 1) }

// pollSize returns the number of records for one poll.
func (s *Sender) pollSize() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(s.maxEvents(), readAtOnce)
}

// resume resumes a paused partition when half of its part of the backlog is free. The
// difference between the two levels makes a fetch worthwhile. The caller holds mu.
func (s *Sender) resume(p *partition) {
	if !p.paused || p.events.len() > s.maxEvents()/2 {
		return
	}
	s.client.ResumeFetchPartitions(p.topics())
	p.paused = false
	s.counts.Resumes++
}

func (p *partition) topics() map[string][]int32 { return map[string][]int32{p.topic: {p.id}} }
