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

// assigned adds partitions that the group has assigned to this instance.
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

// revoked releases partitions. revoked drops records that were not sent, waits for calls in
// flight, and commits before the next owner starts to read. No record is sent twice if all
// calls end in time. The group waits for revoked.
func (s *Sender) revoked(ctx context.Context, client *kgo.Client, theirs map[string][]int32) {
	s.handover.Lock()
	defer s.handover.Unlock()
	released := s.drop(client, theirs)
	if len(released) == 0 {
		return // The session has ended without a change of partitions.
	}
	abandoned := s.await(ctx, released)
	s.forget(released)
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		s.c.Logger.Error("cannot commit: records sent since the last commit will be sent again", "error", err)
	}
	s.c.Logger.Info("partitions released", "partitions", len(released), "calls_abandoned", abandoned)
}

// ours returns the assigned partitions.
func (s *Sender) ours() map[string][]int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := make(map[string][]int32)
	for at := range s.partitions {
		ours[at.topic] = append(ours[at.topic], at.id)
	}
	return ours
}

// lost removes partitions that other instances already have, because the session of this
// instance has expired. Records sent since the last commit will be sent again.
func (s *Sender) lost(_ context.Context, client *kgo.Client, theirs map[string][]int32) {
	s.handover.Lock()
	defer s.handover.Unlock()
	released := s.drop(client, theirs)
	s.forget(released)
	if len(released) > 0 {
		s.c.Logger.Warn("partitions lost: records sent since the last commit will be sent again", "partitions", len(released))
	}
}

// drop removes the records of these partitions from the queues, except calls in flight. It
// cancels the tickets of waiting records, so that they use no permits.
func (s *Sender) drop(client *kgo.Client, theirs map[string][]int32) []*partition {
	s.mu.Lock()
	var released []*partition
	var tickets []pace.Ticket
	for topic, ids := range theirs {
		for _, id := range ids {
			p := s.partitions[place{topic, id}]
			if p == nil {
				continue
			}
			p.state = leaving
			released = append(released, p)
			tickets = append(tickets, s.dropEvents(p)...)
		}
	}
	isReleased := func(e *event) bool { return e.of.state != active }
	s.backlog.remove(isReleased)
	s.again.remove(isReleased)
	s.mu.Unlock()
	// A pause survives the assignment and would still apply if the partition returned.
	client.ResumeFetchPartitions(theirs)
	s.giveUp(tickets...)
	return released
}

// dropEvents counts the dropped records of a partition, and returns the tickets of waiting
// records.
func (s *Sender) dropEvents(p *partition) []pace.Ticket {
	var tickets []pace.Ticket
	for _, e := range p.events.all() {
		switch e.state {
		case waiting:
			tickets = append(tickets, e.ticket)
		case delayed:
			e.timer.Stop()
		case calling, done:
			continue
		case queued:
		}
		s.counts.Dropped++
	}
	return tickets
}

// await waits until no call of these partitions is in flight, for at most Config.Drain. It
// returns the number of calls that are still in flight.
func (s *Sender) await(ctx context.Context, released []*partition) (abandoned int) {
	s.mu.Lock()
	var busy []chan struct{}
	for _, p := range released {
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
	for _, p := range released {
		abandoned += p.calls
	}
	s.counts.Abandoned += abandoned
	return abandoned
}

// forget removes partitions.
func (s *Sender) forget(released []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range released {
		p.state = gone
		delete(s.partitions, p.place)
	}
}

// committed logs the error of a regular commit. The next commit includes its offsets.
func (s *Sender) committed(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
	if err == nil && resp != nil {
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				err = cmp.Or(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	if err != nil {
		s.c.Logger.Warn("cannot commit: the next commit will include these offsets", "error", err)
	}
}
