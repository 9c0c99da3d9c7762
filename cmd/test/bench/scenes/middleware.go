package scenes

import (
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/cmd/test/bench/middlewares"
)

// middlewareClients is the number of clients that take turns. The processor's cache cannot
// hold the state of so many clients by chance. With more clients, memory access would
// dominate the time of the middleware.
const middlewareClients = 1024

// middleware compares the time that the middlewares for net/http add to a handler.
func middleware(limit limiters.Limit, want contest.Outcome) (*contest.Contest, error) {
	c := &contest.Contest{
		About: "the time that a middleware for net/http adds to an empty handler, one goroutine; " +
			"limits per X-Client-Id, with the header fields that describe the limit",
		Workers: 1,
		Want:    want,
	}
	bar := barMiddleware
	if want == contest.Deny {
		bar = 0 // The peers refuse with one line of text, which is less work than a problem document.
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

// stagedMiddleware measures the time that a stage after the rules adds to the middleware.
// The middleware keeps a Ticket until the handler returns, and records the status.
func stagedMiddleware(limit limiters.Limit) (*contest.Contest, error) {
	c := &contest.Contest{
		About:     "httplimit with a rule, and with a further stage that counts the requests in flight; one goroutine",
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

// enterMiddleware adds a middleware around an empty handler. For a contest that denies, it
// first uses up the limit of all clients.
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
