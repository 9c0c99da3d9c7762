package xds

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"
)

// follower is the state of one call of Follow. It outlives the streams.
type follower struct {
	source    *Source
	apply     func([]Resource) error
	faults    faults
	secure    *tls.Config   // made from the last valid certificate files
	pingEvery time.Duration // interval of pings
	good      *accepted     // nil before the first accepted configuration
	refused   *refused      // nil if the last configuration was accepted
}

// accepted is the configuration in force.
type accepted struct {
	version string
	content digest
}

// refused is the configuration that was refused last.
type refused struct {
	version string
	content digest
	times   int       // number of refusals
	next    time.Time // earliest time of the next refusal
}

// run opens a stream and follows it until it is lost. It reports whether the server sent a response.
func (f *follower) run(ctx context.Context) (answered bool, err error) {
	s, err := f.open(ctx)
	if err != nil {
		return false, err
	}
	defer s.close()
	if err := s.send(request{}); err != nil {
		return false, err
	}
	var (
		newest *response        // the response that waits for an answer
		due    <-chan time.Time // when to answer
	)
	for {
		select {
		case <-ctx.Done():
			return answered, ctx.Err()
		case err := <-s.lost:
			return answered, err
		case r := <-s.responses:
			answered = true
			if r.typeURL != TypeURL {
				f.faults.report("type", fmt.Errorf("config/source/xds: %s sent a response of type %.100q, which is ignored: send only %s",
					f.source, r.typeURL, TypeURL))
				continue
			}
			newest, due = r, time.After(f.pauseBefore(r))
		case <-due:
			if err := f.answer(s, newest); err != nil {
				return answered, err
			}
			newest, due = nil, nil
		}
	}
}

// pauseBefore returns how long the answer to a response must wait. A server that sends a refused
// configuration again at once would otherwise keep both sides busy.
func (f *follower) pauseBefore(r *response) time.Duration {
	if !f.refused.same(r) {
		return 0
	}
	return max(0, time.Until(f.refused.next))
}

func (old *refused) same(r *response) bool {
	return old != nil && old.version == r.version && old.content == r.content
}

// answer acknowledges or refuses a response.
func (f *follower) answer(s *stream, r *response) error {
	if err := f.accept(r); err != nil {
		return s.send(f.refusal(r, err))
	}
	f.good, f.refused = &accepted{r.version, r.content}, nil
	return s.send(request{version: r.version, nonce: r.nonce})
}

// accept puts the resources of a response in force, unless they are in force already.
func (f *follower) accept(r *response) error {
	if f.good != nil && f.good.content == r.content && !r.tooMany {
		return nil
	}
	resources, err := r.convert()
	if err != nil {
		return err
	}
	return f.apply(resources)
}

// refusal notes a refusal, and returns the message to the server.
func (f *follower) refusal(r *response, cause error) request {
	if !f.refused.same(r) {
		f.refused = &refused{version: r.version, content: r.content}
		f.faults.report(fmt.Sprintf("refused %x", r.content), &RefusedError{Version: cut(r.version, 100), Err: cause})
	}
	f.refused.times++
	f.refused.next = time.Now().Add(refusalPause(f.refused.times))
	answer := request{nonce: r.nonce, refusal: cmp.Or(cut(cause.Error(), maxRefusal), "refused")}
	// The version of the refused response with an error could count as an acknowledgement.
	if f.good != nil && f.good.version != r.version {
		answer.version = f.good.version
	}
	return answer
}

const (
	maxRefusal   = 1 << 10
	firstRefusal = time.Second
	lastRefusal  = 5 * time.Second
)

// refusalPause returns the pause after a number of refusals of one configuration: 1, 2, 4, 5, 5 s.
func refusalPause(times int) time.Duration {
	return min(firstRefusal<<min(times-1, 10), lastRefusal)
}

// cut returns at most n bytes of a text, as valid UTF-8.
func cut(text string, n int) string {
	if len(text) > n {
		text = text[:n] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
