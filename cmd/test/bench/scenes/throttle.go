package scenes

import (
	"context"
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
)

// Names of the sides of throttled.
const (
	ruleThrottled = "headgate Admit and Done, a rule and the throttle"
	ruleAlone     = "headgate Admit and Done, a rule"
)

// throttled measures the time that the throttle adds to a request when no request waits.
func throttled(l limiters.Limit) (*contest.Contest, error) {
	stage, err := throttler.New(throttler.Config{Limits: throttler.Limits{Concurrency: 1000}})
	if err != nil {
		return nil, err
	}
	c := &contest.Contest{
		About: "Admit, Forward and Done of a guard with one rule, in memory, with the throttle and without; " +
			"1,024 clients, no request waits",
		Workers: 1,
		Questions: []contest.Question{
			{Of: ruleThrottled, Against: ruleAlone, Difference: true, Bar: barThrottle},
			{Of: ruleThrottled, Against: ruleAlone, Difference: true, Meter: cpu},
		},
	}
	for _, side := range []struct {
		name   string
		stages []guard.Stage
	}{{ruleThrottled, []guard.Stage{stage}}, {ruleAlone, nil}} {
		g, err := deciding(l, side.stages...)
		if err != nil {
			return nil, err
		}
		p := &passing{guard: g, requests: togetherOf(everyKey(middlewareClients))}
		c.Sides = append(c.Sides, contest.Side{Name: side.name, Kind: contest.Ours, Run: func(_, n int) contest.Tally { return p.run(n) }})
	}
	meterCPU(c)
	return c, nil
}

// passing takes requests through a guard in turns, one after the other. The number of requests
// is a power of two.
type passing struct {
	guard    *guard.Guard
	requests []headgate.Request
	at       int
	ticket   guard.Ticket
	answer   guard.Answer
}

func (p *passing) run(n int) (t contest.Tally) {
	for range n {
		p.ticket.Answer = &p.answer
		if err := p.guard.Admit(context.Background(), &p.requests[p.at], &p.ticket); err != nil {
			return t.Add(contest.Failure(err))
		}
		if p.answer.Verdict == headgate.Allow {
			t.Allowed++
		} else {
			t.Denied++
		}
		p.ticket.Forward()
		p.ticket.Done(guard.Outcome{Status: http.StatusOK})
		p.at = (p.at + 1) & (len(p.requests) - 1)
	}
	return t
}
