package main

import (
	"cmp"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/headgate/headgate/pace"
)

// assigned begins to keep account of partitions that have become ours.
func (s *Sender) assigned(_ context.Context, _ *kgo.Client, ours map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, ids := range ours {
		for _, id := range ids {
			at := place{topic, id}
			s.partitions[at] = &partition{place: at}
		}
	}
}

// revoked gives partitions away: what was not sent is left to whoever has them next, the
// calls under way are waited for, and what is done is committed before others begin to
// read. So nothing is sent twice when they all end in time. The group waits meanwhile.
func (s *Sender) revoked(ctx context.Context, client *kgo.Client, theirs map[string][]int32) {
	s.handover.Lock()
	defer s.handover.Unlock()
	parting := s.drop(client, theirs)
	if len(parting) == 0 {
		return // A session has ended in which nothing changed.
	}
	abandoned := s.await(ctx, parting)
	s.forget(parting)
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		s.c.Logger.Error("cannot commit: what was sent since the last commit will be sent again", "error", err)
	}
	s.c.Logger.Info("partitions given away", "partitions", len(parting), "calls_abandoned", abandoned)
}

// ours gives the partitions that are ours.
func (s *Sender) ours() map[string][]int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := make(map[string][]int32)
	for at := range s.partitions {
		ours[at.topic] = append(ours[at.topic], at.id)
	}
	return ours
}

// lost forgets partitions that others have already: we were away for too long. What was
// sent since the last commit is sent again.
func (s *Sender) lost(_ context.Context, client *kgo.Client, theirs map[string][]int32) {
	s.handover.Lock()
	defer s.handover.Unlock()
	parting := s.drop(client, theirs)
	s.forget(parting)
	if len(parting) > 0 {
		s.c.Logger.Warn("partitions lost: what was sent since the last commit will be sent again", "partitions", len(parting))
	}
}

// drop takes what was not begun of these partitions out of the queues, and gives back
// the places of those that wait for a permit: none is spent on them.
func (s *Sender) drop(client *kgo.Client, theirs map[string][]int32) []*partition {
	s.mu.Lock()
	var parting []*partition
	var tickets []pace.Ticket
	for topic, ids := range theirs {
		for _, id := range ids {
			p := s.partitions[place{topic, id}]
			if p == nil {
				continue
			}
			p.state = leaving
			parting = append(parting, p)
			tickets = append(tickets, s.dropEvents(p)...)
		}
	}
	parted := func(e *event) bool { return e.of.state != owned }
	s.backlog.remove(parted)
	s.again.remove(parted)
	s.mu.Unlock()
	// A pause outlives the assignment: it would hold when the partition comes back.
	client.ResumeFetchPartitions(theirs)
	s.giveUp(tickets...)
	return parting
}

// dropEvents counts what is dropped of a partition, and gives the tickets of those that wait.
func (s *Sender) dropEvents(p *partition) []pace.Ticket {
	var tickets []pace.Ticket
	for _, e := range p.events.all() {
		switch e.state {
		case waiting:
			tickets = append(tickets, e.ticket)
		case resting:
			e.timer.Stop()
		case calling, done:
			continue
		case queued:
		}
		s.counts.Dropped++
	}
	return tickets
}

// await waits until no call of these partitions is under way any more, but no longer than
// Config.Drain, and gives how many still are.
func (s *Sender) await(ctx context.Context, parting []*partition) (abandoned int) {
	s.mu.Lock()
	var busy []chan struct{}
	for _, p := range parting {
		if p.calls > 0 {
			p.idle = make(chan struct{})
			busy = append(busy, p.idle)
		}
	}
	s.mu.Unlock()
	timer := time.NewTimer(s.c.Drain)
	defer timer.Stop()
	for _, idle := range busy {
		select {
		case <-idle:
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parting {
		abandoned += p.calls
	}
	s.counts.Abandoned += abandoned
	return abandoned
}

// forget ends the account of partitions.
func (s *Sender) forget(parting []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parting {
		p.state = gone
		delete(s.partitions, p.place)
	}
}

// committed looks at what came of a regular commit. What failed is made up for by the
// next, so it is only told.
func (s *Sender) committed(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
	if err == nil && resp != nil {
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				err = cmp.Or(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	if err != nil {
		s.c.Logger.Warn("cannot commit: it is tried again", "error", err)
	}
}
