package scenes

import (
	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
	"github.com/headgate/headgate/test/bench/middlewares"
)

// middlewareClients is how many clients take turns: enough that no side has all it
// needs at hand by chance, and few enough that the scene is about the middleware.
const middlewareClients = 1024

// middleware compares what the middlewares for net/http add to a handler.
func middleware(limit limiters.Limit, want contest.Outcome) (*contest.Contest, error) {
	c := &contest.Contest{
		About: "what a middleware for net/http adds to a handler that does nothing, one goroutine; " +
			"by the header X-Client-Id, with the fields that tell a client of its limit",
		Workers: 1,
		Want:    want,
	}
	bar := barMiddleware
	if want == contest.Deny {
		bar = 0 // The peers' refusals are a line of text: they do not do the same work.
	}
	for _, of := range []string{middlewares.Headgate, middlewares.HeadgateX} {
		c.Questions = append(c.Questions, contest.Question{Of: of, Against: contest.FastestExact, Beyond: middlewares.Bare, Bar: bar})
	}
	c.Questions = append(c.Questions,
		contest.Question{Of: middlewares.HeadgateFairShare, Against: middlewares.Headgate, Beyond: middlewares.Bare},
		contest.Question{Of: middlewares.HeadgateFairShare, Against: contest.FastestExact, Beyond: middlewares.Bare},
	)
	for _, m := range append(middlewares.All(), middlewares.FairShare(middlewareClients)) {
		if err := enterMiddleware(c, m, limit); err != nil {
			return nil, err
		}
		if m.Kind == contest.Peer {
			c.Questions = append(c.Questions, contest.Question{Of: middlewares.Headgate, Against: m.Name, Beyond: middlewares.Bare})
		}
	}
	return c, nil
}

// stagedMiddleware tells what a stage behind the rules adds to the middleware: the request
// has a Ticket until its handler has returned, and a writer that notes the status.
func stagedMiddleware(limit limiters.Limit) (*contest.Contest, error) {
	c := &contest.Contest{
		About:     "httplimit with a rule, and with a stage beside the rule that counts the requests in flight, one goroutine",
		Workers:   1,
		Questions: []contest.Question{{Of: middlewares.HeadgateStage, Against: middlewares.Headgate, Beyond: middlewares.Bare}},
	}
	for _, m := range middlewares.Staged() {
		if err := enterMiddleware(c, m, limit); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// enterMiddleware puts a middleware around a handler and lets it take part. Where
// requests are to be denied, the limit of all clients is used up first.
func enterMiddleware(c *contest.Contest, m middlewares.Maker, l limiters.Limit) error {
	h, err := m.New(l, middlewares.Service())
	if err != nil {
		return err
	}
	requests := middlewares.Requests(middlewareClients)
	if c.Want == contest.Deny {
		middlewares.Serve(h, requests, 0, len(requests))
	}
	at := 0
	c.Sides = append(c.Sides, contest.Side{
		Name: m.Name, Kind: m.Kind, MayFail: m.MayFail,
		Run: func(_, n int) contest.Tally {
			from := at
			at = (at + n) & (len(requests) - 1)
			return middlewares.Serve(h, requests, from, n)
		},
	})
	return nil
}
