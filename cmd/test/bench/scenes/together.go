package scenes

import (
	"context"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// togetherRequests is the number of requests that one operation decides.
const togetherRequests = 100

// Names of the sides of decideTogether.
const (
	decideAll = "headgate DecideAll, 100 requests"
	decides   = "headgate Decide, 100 times"
)

// decideTogether compares one call that decides many requests with one call per request.
func decideTogether(l limiters.Limit) (*contest.Contest, error) {
	c := &contest.Contest{
		About:     "100 requests of 100 clients decided in memory, by one call and by 100 calls; an operation is 100 requests",
		Workers:   1,
		Questions: []contest.Question{{Of: decideAll, Against: decides, Bar: barTogether}},
	}
	for _, name := range []string{decideAll, decides} {
		g, err := deciding(l)
		if err != nil {
			return nil, err
		}
		requests, answers := togetherOf(everyKey(togetherRequests)), make([]guard.Answer, togetherRequests)
		decide := oneByOne
		if name == decideAll {
			decide = (*guard.Guard).DecideAll
		}
		c.Sides = append(c.Sides, contest.Side{Name: name, Kind: contest.Ours, Run: func(_, n int) (t contest.Tally) {
			for range n {
				decide(g, context.Background(), requests, answers)
				t = t.Add(togetherTally(answers))
			}
			return t
		}})
	}
	return c, nil
}

// deciding returns a guard with a memory store, one limit for each client, and the stages.
func deciding(l limiters.Limit, stages ...guard.Stage) (*guard.Guard, error) {
	store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
	if err != nil {
		return nil, fmt.Errorf("create the memory store: %w", err)
	}
	client, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		return nil, fmt.Errorf("parse the key of the rule: %w", err)
	}
	return guard.New(guard.Config{Store: store, Stages: stages, Rules: []guard.Rule{{ //nolint:wrapcheck // The error needs no context.
		Rule:     rule.Rule{Name: "client", Key: []rule.Part{client}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: int64(l.Count), Per: l.Per, Burst: int64(l.Burst)}}},
	}}})
}

// clientID is the header of a request. Every field of the header has the client's name as
// its value.
type clientID string

// Lookup implements headgate.Values.
func (c clientID) Lookup(string) (string, bool) { return string(c), true }

// togetherOf returns one request for each client.
func togetherOf(clients []string) []headgate.Request {
	requests := make([]headgate.Request, len(clients))
	for i, client := range clients {
		requests[i] = headgate.Request{
			Method: "GET", Path: "/v1/product", Header: clientID(client),
		}
	}
	return requests
}

// oneByOne has the signature of Guard.DecideAll, and calls Decide for each request.
//
//nolint:revive // The guard is first, as in the method expression of DecideAll.
func oneByOne(g *guard.Guard, ctx context.Context, requests []headgate.Request, answers []guard.Answer) {
	for i := range requests {
		answers[i].Error = g.Decide(ctx, &requests[i], &answers[i])
	}
}

// togetherTally counts an operation as allowed when all of its requests are allowed.
func togetherTally(answers []guard.Answer) contest.Tally {
	for i := range answers {
		if err := answers[i].Error; err != nil {
			return contest.Failure(err)
		}
		if answers[i].Verdict != headgate.Allow {
			return contest.Tally{Denied: 1}
		}
	}
	return contest.Tally{Allowed: 1}
}
