package objects

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// together is how long changes are collected that arrive one after another: each step of the guard costs
	// milliseconds of processor time, and decisions wait for it on a small machine.
	together = 250 * time.Millisecond
	// maxQueued bounds the changes that wait, and source.MaxTotal the texts of those that the sink has not taken. A source that sends
	// more waits.
	maxQueued = 1024
)

// Follower follows a source, and gives its changes to a Sink in batches.
type Follower struct {
	source source.Source
	sink   Sink
	events chan event
	queued *queued
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// Sink takes what a source has. One goroutine calls it.
type Sink interface {
	// Changed takes changes in their order, which came together.
	Changed([]source.Change)
	// Reached says that everything that the source had at a time was given to Changed.
	Reached(at time.Time)
	// Failed says that the source cannot be read at the moment.
	Failed(error)
}

// event is one call of the source. One field is set.
type event struct {
	change  *source.Change
	reached time.Time
	failed  error
}

// Follow starts to follow a source until Stop.
func Follow(from source.Source, sink Sink) *Follower {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{source: from, sink: sink, events: make(chan event, maxQueued), queued: newQueued(), cancel: cancel}
	f.ended.Go(func() {
		defer close(f.events)
		from.Follow(ctx, receiver{ctx, f.events, f.queued})
	})
	f.ended.Go(f.deliver)
	return f
}

// Stop ends the following, and closes the source.
func (f *Follower) Stop() error {
	f.cancel()
	f.ended.Wait()
	return f.source.Close()
}

// receiver gives the calls of a source to a channel.
type receiver struct {
	ctx context.Context //nolint:containedctx // because the methods of a source.Receiver have none.
	to  chan<- event

	queued *queued
}

// Changed implements source.Receiver.
func (r receiver) Changed(c source.Change) { r.send(event{change: &c}) }

// Reached implements source.Receiver.
func (r receiver) Reached(at time.Time) { r.send(event{reached: at}) }

// Failed implements source.Receiver.
func (r receiver) Failed(err error) { r.send(event{failed: err}) }

func (r receiver) send(e event) {
	if !r.queued.add(r.ctx, e.size()) {
		return
	}
	select {
	case r.to <- e:
	case <-r.ctx.Done():
	}
}

// deliver gives the events to the sink.
func (f *Follower) deliver() {
	for e := range f.events {
		if e.change == nil {
			f.tell(e)
			continue
		}
		changes, last := f.collect(*e.change)
		f.sink.Changed(changes)
		for i := range changes {
			f.queued.remove(textsOf(&changes[i]))
		}
		if last != nil {
			f.tell(*last)
		}
	}
}

// collect waits for changes that follow within a short time. It also returns the event that ended the wait.
func (f *Follower) collect(first source.Change) (changes []source.Change, last *event) {
	changes = []source.Change{first}
	wait := time.NewTimer(together)
	defer wait.Stop()
	for {
		select {
		case e, more := <-f.events:
			switch {
			case !more:
				return changes, nil
			case e.failed != nil:
				return changes, &e
			case e.change == nil:
				last = &e // Later changes come before it, which does no harm: the source had them at the time.
			default:
				changes = append(changes, *e.change)
			}
			if e.change == nil && changes[0].All {
				return changes, last // Nothing follows the first read for a while.
			}
		case <-wait.C:
			return changes, last
		}
	}
}

// tell gives an event that is no change.
func (f *Follower) tell(e event) {
	if e.failed != nil {
		f.sink.Failed(e.failed)
		return
	}
	f.sink.Reached(e.reached)
}
